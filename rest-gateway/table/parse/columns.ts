import { readName } from "./field.ts";
import { Scanner } from "./scanner.ts";

/** `id,"a,b",name`, the value of the parameters columns and on_conflict */
export function parseColumns(parameter: "columns" | "on_conflict", text: string): readonly string[] {
  const scanner = new Scanner(`${parameter} parameter`, text);
  const names = [readName(scanner)];
  for (;;) {
    const end = scanner.position;
    scanner.skipSpace();
    if (!scanner.take(",")) return scanner.position === end ? names : scanner.fail();
    scanner.skipSpace();
    names.push(readName(scanner));
  }
}

import type { Field } from "../../statement/intent.ts";
import { readName, readPath } from "./field.ts";
import { Scanner } from "./scanner.ts";

type FieldPath = { readonly path: readonly string[]; readonly field: Field };

/** A parameter's name: `author.books.data->>title` is a field of a relation embedded in a relation. */
export function parsePath(text: string): FieldPath {
  const scanner = new Scanner("tree path", text);
  const names = readNames(scanner);
  const path = readPath(scanner);
  return { field: { name: names.pop()!, path }, path: names };
}

/** `author.not.or`: where a logic tree belongs, and how it begins. */
export function parseLogicPath(text: string): { readonly path: readonly string[]; readonly operator: string } {
  const names = readNames(new Scanner("logic path", text));
  const operator = names.pop()!;
  const path = names.filter((name) => name !== "not");
  return { path, operator: path.length < names.length ? `not.${operator}` : operator };
}

function readNames(scanner: Scanner): string[] {
  const names = [readName(scanner)];
  while (scanner.take(".")) names.push(readName(scanner));
  return names;
}

import { readFile } from "node:fs/promises";
import { join } from "node:path";

const PAGE = join(import.meta.dirname, "../../docs/faults.md");

/** Returns the errors that the page lists for a fault: `503 PGRST000`, or a code of GraphQL. */
export async function documentedAnswers(fault: string): Promise<string[]> {
  const lines = (await readFile(PAGE, "utf8")).split("\n");
  let index = lines.findIndex((line) => line.startsWith(`| ${fault} |`));
  if (index === -1) throw new Error(`docs/faults.md does not speak of: ${fault}`);
  while (answersIn(lines[index]!).includes("as above")) index -= 1;
  return Array.from(answersIn(lines[index]!).matchAll(/`([^`]+)`/g), ([, answer]) => answer!);
}

const answersIn = (row: string) => row.split("|")[2]!;

/** Returns a row of the page, and the figures that its first paragraph sums up, for whoever renews it. */
export function rowOf(
  fault: string,
  refusals: ReadonlyMap<string, number>,
  recoveryMs: number,
  writes: number,
  lost: number,
) {
  const seen = Array.from(refusals, ([answer, times]) => `${times} x \`${answer}\``).join(", ");
  return `| ${fault} | ${seen || "none"} | recovered in ${(recoveryMs / 1000).toFixed(1)} s, ${lost} of ${writes} writes lost`;
}

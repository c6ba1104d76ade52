import { extname } from "node:path";
import { commandLine } from "./command-line.ts";

/** A package has what was built of the sources, and a book of migrations that the next release replaces. */
const isClone = extname(import.meta.filename) === ".ts";

/** What to say to somebody who would write chapters of the book where it is not kept; null in a clone, where it is. */
export function withoutBook(what: string): string | null {
  if (isClone) return null;
  return `${what} is for a clone, where the migrations are kept. Here, change the schema by SQL of your own, with any tool:
  ${commandLine("sql", "< chapter.sql")}`;
}

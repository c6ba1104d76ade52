import { extname } from "node:path";

/** A package has what was built of the sources, and migrations that the next release replaces. */
const isClone = extname(import.meta.filename) === ".ts";

/** Why a release's own migrations cannot be written here; null in a clone, where they are kept. */
export function outsideClone(what: string): string | null {
  if (isClone) return null;
  return `${what} is for a clone of the repository. Here, write migrations of your project: leave out --history.`;
}

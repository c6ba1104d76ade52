import pg from "pg";

/** Undefined column, table and schema. */
const UNKNOWN: ReadonlySet<string | undefined> = new Set(["42703", "42P01", "3F000"]);

/**
 * Whether a statement names what is there no more: it was made by a schema that is about to be replaced. Those that people
 * write, in functions, have a context.
 */
export function isOutdated(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError) || error.where) return false;
  const isFunctionGone = error.code === "42883" && error.routine === "ParseFuncOrColumn";
  return isFunctionGone || UNKNOWN.has(error.code);
}

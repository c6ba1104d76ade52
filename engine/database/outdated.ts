import pg from "pg";

/** Undefined column, table and schema. */
const UNKNOWN: ReadonlySet<string | undefined> = new Set(["42703", "42P01", "3F000"]);

export const JUST_CHANGED = "The database has just been changed; try again in a moment.";

/**
 * Whether a statement names what is there no more: it was made by a schema that is about to be replaced. Those that people
 * write, in functions, have a context; and a value that is taken for a name, in a row say, has no place in the statement.
 */
export function isOutdated(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError) || error.where || error.position === undefined) return false;
  const isFunctionGone = error.code === "42883" && error.routine === "ParseFuncOrColumn";
  return isFunctionGone || UNKNOWN.has(error.code);
}

import type pg from "pg";
import { commandLine } from "#runtime";

type HintedError = Pick<pg.DatabaseError, "code" | "message" | "detail" | "hint">;

/** Matches the refusal of a change of a table because a function with a standard body takes or returns its rows. */
const ROW_TYPE_REFUSAL = /because function .+ uses its row type/s;
const DATATYPE_MISMATCH = "42804";
const UNDEFINED_FUNCTION = "42883";
/** Matches an error in which the two keys of an account meet: in a default, a condition or a foreign key. */
const USER_TYPES = /\b(uuid|bigint)\b.*\b(uuid|bigint)\b/s;
const USER_TYPE_ERRORS =
  /is of type (?:uuid|bigint) but default expression is of type|operator does not exist: (?:uuid|bigint) = |^foreign key constraint .+ cannot be implemented/;

/** Returns Postgres's hint, and our own for an error for which Postgres has no hint, or only a general one. */
export function hintOf(error: HintedError): string | undefined {
  const { code, message, hint } = error;
  if (hasUserTypes(error)) return [hint, USER_KEYS].filter(Boolean).join(" ");
  if (hint !== undefined || code !== "0A000" || !ROW_TYPE_REFUSAL.test(message)) return hint;
  return `Give the function a string body. "${commandLine("doctor")}" and the page Access of Studio print the SQL.`;
}

const USER_KEYS =
  "An account has two keys: auth.users (user_id), a bigint, and auth.users (id), a uuid. auth.uid() returns the first, or the second " +
  "in a project from Supabase. Declare the column with the type that auth.uid() returns, and name the key that it refers to.";

function hasUserTypes({ code, message, detail = "" }: HintedError): boolean {
  if (code !== DATATYPE_MISMATCH && code !== UNDEFINED_FUNCTION) return false;
  const [, one, other] = USER_TYPES.exec(`${message} ${detail}`) ?? [];
  return one !== undefined && one !== other && USER_TYPE_ERRORS.test(message);
}

import type { ApiError } from "../../../engine/errors.ts";
import type { Guard } from "../plan/plan.ts";
import { anotherKey, notSingular, tooManyAffected } from "../plan/refusals.ts";
import { integer, join, literal, type Sql, sql } from "./sql.ts";

/**
 * Nothing that SQL offers everywhere raises an error of one's own, and what was written is to be undone. So a setting
 * is asked for that there is not: its name says what is wrong, and comes back in the message (42704).
 */
export function guardColumn(guards: readonly Guard[]): Sql {
  const cases = guards.map(({ code, rows, count }) => {
    const isWrong = rows === "exactly" ? sql`count(*) <> ${integer(count)}` : sql`count(*) > ${integer(count)}`;
    return sql`when ${isWrong} then current_setting(${literal(`${code} `)} || count(*))`;
  });
  return sql`case ${join(cases, " ")} end`;
}

/** Without the quotes, which are not the same in all of the server's languages. */
const NAMED = /(?<code>PGRST1\d\d) (?<rows>\d+)/;

/** What a guard says by its error; null for all other errors. */
export function refusalOf(error: unknown): ApiError | null {
  const { code, message } = error as { readonly code?: unknown; readonly message?: unknown };
  const named = code === "42704" && typeof message === "string" ? NAMED.exec(message)?.groups : undefined;
  if (!named) return null;
  switch (named.code) {
    case "PGRST115":
      return anotherKey();
    case "PGRST116":
      return notSingular(Number(named.rows));
    case "PGRST124":
      return tooManyAffected(Number(named.rows));
    default:
      return null;
  }
}

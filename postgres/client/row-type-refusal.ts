import type pg from "pg";
import { commandLine } from "#runtime";

/** Postgres refuses to change a table because a function with a standard body takes or returns its rows. */
const REFUSAL = /because function .+ uses its row type/s;

/** The hint of an error: Postgres's own, or what to do about a refusal for which Postgres has none. */
export function hintOf({ code, message, hint }: pg.DatabaseError): string | undefined {
  if (hint !== undefined || code !== "0A000" || !REFUSAL.test(message)) return hint;
  return `Give the function a string body. "${commandLine("doctor")}" and the page Access of Studio print the SQL.`;
}

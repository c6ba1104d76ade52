import type { DatabaseError } from "pg";
import type { DataType } from "../../engine/catalog/types.ts";
import { isForPostgres } from "./parse/value.ts";
import type { SentValue } from "./sent-values.ts";

/** `numeric_value_out_of_range`, dates and times, `invalid_parameter_value` (a time zone), bounds of ranges. */
const OF_VALUES: readonly string[] = ["22000", "22003", "22007", "22008", "22023", "22P02"];

/** Of a parameter of the statement. What a function of the database trips over has another one. */
const OWN_CONTEXT = /^(unnamed )?portal |^JSON data/;

/**
 * Which of the values Postgres could not take. It does not tell their columns, but quotes what it could not read; where it
 * quotes nothing, the only value that it alone can judge is meant.
 */
export function unreadValues(error: DatabaseError, sent: readonly SentValue[]): readonly SentValue[] {
  const { code = "", message, dataType, where } = error;
  if (code.startsWith("23")) return theOnly(sent.filter(({ type }) => dataType && isDomain(type, dataType)));
  const judged = sent.filter(({ type, value }) => value !== null && isForPostgres(type));
  const quoted = judged.filter(({ value }) => [...new Set(textsIn(value))].some((text) => isQuoted(text, message)));
  const isOfStatement = where === undefined || OWN_CONTEXT.test(where);
  const isOnly = judged.length === 1 && isOfStatement && OF_VALUES.includes(code);
  return quoted.length > 0 || !isOnly ? quoted : judged;
}

/** Nobody is blamed for another one's fault. */
function theOnly(suspects: readonly SentValue[]): readonly SentValue[] {
  return suspects.length === 1 ? suspects : [];
}

function isDomain(type: DataType, name: string): boolean {
  if (type.kind === "array") return isDomain(type.element, name);
  return type.kind === "domain" && (type.name === name || isDomain(type.over, name));
}

/** All texts of a JSON value. */
function textsIn(value: unknown): readonly string[] {
  if (typeof value === "object" && value !== null) return Object.values(value).flatMap(textsIn);
  return value === null ? [] : [String(value)];
}

/** Postgres quotes a value whole, and to look for one in what is as long as a body takes too long. */
const LONGEST_MESSAGE = 5_000;
/** In whatever language Postgres speaks; French has a blank within. */
const BEFORE = /["'«»„“”‘’「」『』]\s?$/;
const BEHIND = /^\s?["'«»„“”‘’「」『』]/;

function isQuoted(text: string, message: string): boolean {
  if (message.length > LONGEST_MESSAGE) return false;
  for (let at = message.indexOf(text); at >= 0; at = message.indexOf(text, at + 1)) {
    const end = at + text.length;
    if (BEFORE.test(message.slice(Math.max(0, at - 2), at)) && BEHIND.test(message.slice(end, end + 2))) return true;
    if (at === message.length) return false;
  }
  return false;
}

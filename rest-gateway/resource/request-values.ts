import type { DatabaseError } from "pg";
import type { DataType } from "#catalog";
import type { Intent, RowPayload } from "#planner/intent";
import type { Collection, RowAction } from "./collections/collections.ts";
import type { SentMembers } from "./operation.ts";
import type { ResourceTarget } from "./parse/address.ts";
import { filterFieldOf } from "./parse/parameters.ts";
import type { ResourceRequest } from "./parse/request.ts";
import { isCheckedByPostgres } from "./parse/values.ts";

/** SQLSTATEs of out-of-range numbers, dates and times, unknown time zones, bounds of ranges, lengths of bit strings, and XML. */
const VALUE_ERROR_CODES: readonly string[] = "22000 22003 22007 22008 22009 22015 22023 22026 2200M 2200N 22P02".split(
  " ",
);

/** The context of a statement parameter; errors inside database functions have another one. */
const STATEMENT_CONTEXT = /^(unnamed )?portal |^JSON data/;

/** The maximum length of a searched message. Postgres quotes a value as a whole; searching a message as long as a body takes too long. */
const LONGEST_MESSAGE = 5_000;
/** The quotation marks of all languages of Postgres; French has a space inside. */
const OPENING_QUOTE = /["'«»„“”‘’「」『』]\s?$/;
const CLOSING_QUOTE = /^\s?["'«»„“”‘’「」『』]/;

/** A value of a request with the client's name for it; null for a value in the path. */
export type RequestValue = { readonly field: string | null; readonly type: DataType; readonly value: unknown };

/** Returns the values of a statement. `sent` has the values of its request's body. */
export function requestValues(
  intent: Intent,
  parsed: ResourceRequest,
  sent: readonly SentMembers[],
): readonly RequestValue[] {
  return [...valuesOfKeys(parsed.target), ...namedValues(intent, parsed, sent)];
}

function namedValues(intent: Intent, parsed: ResourceRequest, sent: readonly SentMembers[]): readonly RequestValue[] {
  const { collection, action } = parsed.target;
  switch (intent.kind) {
    case "insert":
    case "update":
      return valuesOfPayload(intent.payload, collection, sent);
    case "call":
      return action ? valuesOfArguments(action, sent) : [];
    default:
      return valuesOfFilters(parsed);
  }
}

/** Returns the values in the keys of the row and of its parents. */
function valuesOfKeys({ parents, collection, key }: ResourceTarget): readonly RequestValue[] {
  const steps = [...parents, ...(key === null ? [] : [{ collection, key }])];
  return steps.flatMap((step) =>
    step.collection.key.map(({ column }, index) => ({ field: null, type: column.type, value: step.key[index] })),
  );
}

function valuesOfFilters({ parameters, target }: ResourceRequest): readonly RequestValue[] {
  return [...parameters].flatMap(([name, value]) => {
    const field = filterFieldOf(name, target.collection);
    return field ? [{ field: name, type: field.column.type, value }] : [];
  });
}

/** Returns the values of a body. The field of the second row of a list is `1.title`. */
function valuesOfPayload(
  payload: RowPayload,
  { fields }: Collection,
  rows: readonly SentMembers[],
): readonly RequestValue[] {
  return rows.flatMap((row, index) =>
    fields.flatMap(({ name, column }) => {
      const sent = row.get(column.name);
      if (sent === undefined || !("value" in sent)) return [];
      return [{ field: payload.isArray ? `${index}.${name}` : name, type: column.type, value: sent.value }];
    }),
  );
}

function valuesOfArguments(action: RowAction, [members]: readonly SentMembers[]): readonly RequestValue[] {
  return action.arguments.flatMap(({ name, argument: { name: inSql, type } }) => {
    const sent = members?.get(inSql!);
    return sent === undefined || !("value" in sent) ? [] : [{ field: name, type, value: sent.value }];
  });
}

/**
 * Finds the values that Postgres could not parse. Its errors do not name columns, but quote the text; if nothing is
 * quoted, it is the only value that Postgres alone checks.
 */
export function findUnreadableValues(error: DatabaseError, sent: readonly RequestValue[]): readonly RequestValue[] {
  const { code = "", message, dataType, where } = error;
  if (code.startsWith("23")) return onlyOne(sent.filter(({ type }) => dataType && isDomain(type, dataType)));
  const candidates = sent.filter(({ type, value }) => value !== null && isCheckedByPostgres(type));
  const quoted = candidates.filter(({ value }) => [...new Set(textsIn(value))].some((text) => isQuoted(text, message)));
  const isOfStatement = where === undefined || STATEMENT_CONTEXT.test(where);
  const isOnly = candidates.length === 1 && isOfStatement && VALUE_ERROR_CODES.includes(code);
  return quoted.length > 0 || !isOnly ? quoted : candidates;
}

/** Returns the only suspect; nothing if there are several. */
function onlyOne(suspects: readonly RequestValue[]): readonly RequestValue[] {
  return suspects.length === 1 ? suspects : [];
}

function isDomain(type: DataType, name: string): boolean {
  if (type.kind === "array") return isDomain(type.element, name);
  return type.kind === "domain" && (type.name === name || isDomain(type.over, name));
}

/** Returns all scalar texts of a JSON value. */
function textsIn(value: unknown): readonly string[] {
  if (typeof value === "object" && value !== null) return Object.values(value).flatMap(textsIn);
  return value === null ? [] : [String(value)];
}

function isQuoted(text: string, message: string): boolean {
  if (message.length > LONGEST_MESSAGE) return false;
  for (let at = message.indexOf(text); at >= 0; at = message.indexOf(text, at + 1)) {
    const end = at + text.length;
    if (OPENING_QUOTE.test(message.slice(Math.max(0, at - 2), at)) && CLOSING_QUOTE.test(message.slice(end, end + 2)))
      return true;
    if (at === message.length) return false;
  }
  return false;
}

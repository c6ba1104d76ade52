import pg from "pg";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import { baseTypeOf } from "../../engine/catalog/types.ts";
import { ANONYMOUS_NOT_SERVED, ContextError, isRoleRefused } from "../../engine/database/faults.ts";
import { isOutdated, JUST_CHANGED } from "../../engine/database/outdated.ts";
import { ApiError, type FieldFault, toApiError, unavailable } from "../../engine/errors.ts";
import { lengthFault, type Sentence, sentenceOf } from "../../engine/sql-sentences.ts";
import type { Collection } from "./collections.ts";
import { namingOf } from "./naming.ts";
import { codesOf, invalidId, notPermitted, severalRows } from "./refusals.ts";
import type { SentValue } from "./sent-values.ts";
import { unreadValues } from "./unread-values.ts";

type Circumstances = {
  readonly anonymous: boolean;
  readonly catalog: Catalog;
  readonly version: number;
  /** Null: it went wrong before it was known. */
  readonly collection: Collection | null;
  /** What of the request Postgres may find fault with. */
  readonly sent: () => readonly SentValue[];
};

const CHALLENGE = { "WWW-Authenticate": "Bearer" };

/** Whatever was thrown, in the words of the conventional interface: those of the constraint's comment, beside its field. */
export function explain(thrown: unknown, around: Circumstances): ApiError {
  const error = inOurWords(thrown, around);
  return error.status !== 401 || error.headers["WWW-Authenticate"] ? error : error.withHeaders(CHALLENGE);
}

function inOurWords(thrown: unknown, around: Circumstances): ApiError {
  if (thrown instanceof ContextError) {
    if (around.anonymous && isRoleRefused(thrown)) {
      return new ApiError(401, "AUTH_REQUIRED", ANONYMOUS_NOT_SERVED, { cause: thrown });
    }
    return new ApiError(401, "INVALID_TOKEN", "The credential names no role of this service.", { cause: thrown });
  }
  if (thrown instanceof ApiError && thrown.code === "PGRST124") return severalRows();
  if (!(thrown instanceof pg.DatabaseError)) return toApiError(thrown);
  if (thrown.code === "42501") return notPermitted(around);
  if (isOutdated(thrown)) return unavailable(JUST_CHANGED, thrown);
  const unfit = faultOfValue(thrown);
  const general = toApiError(thrown, around);
  const sentence: Sentence | null = unfit === null ? sentenceOf(thrown, around.catalog) : { message: unfit };
  if (!sentence) return general.status >= 500 ? general : masked(thrown);
  const values = sentence.column ? [] : unreadValues(thrown, around.sent());
  const told = wordsOfFormat(thrown, values) ?? sentence.message;
  const message = sentence.hint ? `${told} ${sentence.hint}` : told;
  const fields = sentence.column ? [fieldOf(sentence.column, around)] : fieldsOf(values);
  if (fields === null) return invalidId(around.version, message, thrown);
  const faults = fields.map((field) => ({ field, message: told }));
  if (unfit !== null) return new ApiError(400, "VALIDATION_ERROR", unfit, { details: faults, cause: thrown });
  return refusal(thrown, { status: general.status, message, faults }, around);
}

/** Of values that Postgres cannot read at all; the words are its own where it says more than that. */
const UNREADABLE: readonly (string | undefined)[] = ["22007", "22P02"];
const FORMATS: Readonly<Record<string, string>> = {
  timestamptz: "a date and time such as 2026-01-31T12:00:00Z",
  timestamp: "a date and time such as 2026-01-31T12:00:00",
  date: "a date such as 2026-01-31",
  timetz: "a time such as 12:30:00Z",
  time: "a time such as 12:30:00",
  interval: "an interval such as P1DT2H",
  inet: "an IP address such as 192.0.2.1",
  cidr: "a network such as 192.0.2.0/24",
};

function wordsOfFormat({ code }: pg.DatabaseError, [first, ...others]: readonly SentValue[]): string | null {
  if (!first || !UNREADABLE.includes(code)) return null;
  const type = baseTypeOf(first.type);
  const isSame = others.every((other) => baseTypeOf(other.type).oid === type.oid);
  const format = isSame && type.schema === "pg_catalog" ? FORMATS[type.name] : undefined;
  return format ? `This must be ${format}.` : null;
}

/** Null where one of them is part of the address. */
function fieldsOf(values: readonly SentValue[]): readonly string[] | null {
  const fields = [...new Set(values.map(({ field }) => field))];
  return fields.every((field) => field !== null) ? fields : null;
}

/** What Postgres says of a value by codes that are for statements as well; null where it is no value. */
function faultOfValue(error: pg.DatabaseError): string | null {
  const { code, message, position, internalPosition } = error;
  // A tsquery, for one. Of SQL, ours or a function's, it says at which character.
  const isOfSql = position !== undefined || internalPosition !== undefined;
  return code === "42601" && !isOfSql ? message : lengthFault(error);
}

type Told = { readonly status: number; readonly message: string; readonly faults: readonly FieldFault[] };

function refusal(
  cause: pg.DatabaseError,
  { status, message, faults }: Told,
  { collection, version }: Circumstances,
): ApiError {
  const code = cause.code!;
  const extra = { ...(faults.length > 0 && { details: faults }), cause };
  switch (code) {
    case "23502":
      return new ApiError(400, codesOf(version).missingField, message, extra);
    case "23514":
      if (collection?.plain) return new ApiError(400, "VALIDATION_ERROR", message, extra);
      return new ApiError(422, "VALIDATION_ERROR", message, { ...extra, beside: { errors: faults } });
    case "25006":
      return new ApiError(403, "PERMISSION_DENIED", message, extra);
    case "40001":
    case "40P01":
    case "55P03":
    case "23P01":
      return new ApiError(409, "RESOURCE_CONFLICT", message, extra);
    case "57014":
      return new ApiError(504, code, message, extra);
    default:
      return new ApiError(status, code, message, extra);
  }
}

function fieldOf(column: string, { collection, version }: Circumstances): string {
  return collection?.fields.find((field) => field.column.name === column)?.name ?? namingOf(version)(column);
}

/** What is no doing of the client's, and would name what stands in the database. */
function masked(cause: pg.DatabaseError): ApiError {
  return toApiError(new Error(cause.message, { cause }));
}

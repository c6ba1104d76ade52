import pg from "pg";
import {
  baseTypeOf,
  type Catalog,
  type DataType,
  databaseErrorMessage,
  INVALID_VALUE,
  invalidValueMessage,
  isOfSqlText,
} from "#catalog";
import { HttpError, toHttpError, withBearerChallenge } from "#http";
import {
  ANONYMOUS_NOT_SERVED,
  ContextError,
  isContextRefused,
  isRoleRefused,
  isSchemaOutdated,
  SCHEMA_CHANGED_MESSAGE,
} from "#postgres/database";
import { ApiError, type FieldError, unavailable } from "#runtime";
import type { Collection } from "./collections/collections.ts";
import { ambiguousRow, errorCodesOf, invalidIdError, permissionDenied } from "./collections/errors.ts";
import { fieldNamingOf } from "./collections/fields.ts";
import { findUnreadableValues, type RequestValue } from "./request-values.ts";

type ErrorContext = {
  readonly anonymous: boolean;
  readonly role: string;
  readonly catalog: Catalog;
  readonly version: number;
  /** The collection; null if the error occurred before it was known. */
  readonly collection: Collection | null;
  /** Returns the values of the request that Postgres may have rejected. */
  readonly sent: () => readonly RequestValue[];
};

/** Converts any error to one of the plain REST interface, with the comment of the violated constraint and its field. */
export function explainError(thrown: unknown, context: ErrorContext): HttpError {
  return withBearerChallenge(toResourceError(thrown, context));
}

function toResourceError(thrown: unknown, context: ErrorContext): HttpError {
  if (thrown instanceof ContextError && isContextRefused(thrown)) {
    if (context.anonymous && isRoleRefused(thrown)) {
      return new HttpError(401, "AUTH_REQUIRED", ANONYMOUS_NOT_SERVED, { cause: thrown });
    }
    return new HttpError(401, "INVALID_TOKEN", "The role of the credential does not exist.", { cause: thrown });
  }
  if (thrown instanceof ApiError && thrown.code === "PGRST124") return ambiguousRow();
  if (!(thrown instanceof pg.DatabaseError)) return toHttpError(thrown);
  if (thrown.code === "42501") return permissionDenied(context);
  if (isSchemaOutdated(thrown)) return toHttpError(unavailable(SCHEMA_CHANGED_MESSAGE, thrown));
  const general = toHttpError(thrown, context);
  const names = isNameError(thrown) ? context.sent().filter(isName) : [];
  if (names.length > 0) return invalidValuesError(thrown, names, context);
  if (invalidValueMessage(thrown) !== null || (isValueError(thrown) && general.status === 400)) {
    return invalidValuesError(thrown, findUnreadableValues(thrown, context.sent()), context);
  }
  const sentence = databaseErrorMessage(thrown, context.catalog, context.role);
  if (!sentence) return general.status >= 500 ? general : hideDetails(thrown);
  const values = sentence.column ? [] : findUnreadableValues(thrown, context.sent());
  const message = sentence.hint ? `${sentence.message} ${sentence.hint}` : sentence.message;
  const fields = sentence.column ? [fieldNameOf(sentence.column, context)] : fieldNamesOf(values);
  if (fields === null) return invalidIdError(context.version, message, thrown);
  const faults = fields.map((field) => ({ field, message: sentence.message }));
  return toSqlStateError(thrown, { status: general.status, message, faults }, context);
}

/** SQLSTATEs of names that Postgres cannot read or find; in statements they have a position. */
const NAME_ERROR_CODES: readonly (string | undefined)[] = "0A000 3F000 42601 42602 42704 42725 42883 42P01".split(" ");

function isNameError(error: pg.DatabaseError): boolean {
  return NAME_ERROR_CODES.includes(error.code) && !isOfSqlText(error);
}

/** Returns true for a value of regclass, regtype, … */
function isName({ type: declared, value }: Pick<RequestValue, "type" | "value">): boolean {
  const type = baseTypeOf(declared);
  if (type.kind === "array") return isName({ type: type.element, value });
  return value !== null && type.schema === "pg_catalog" && type.name.startsWith("reg");
}

/** Returns true for data exceptions that Postgres itself raises: their messages concern its types and functions. */
function isValueError({ code = "", routine }: pg.DatabaseError): boolean {
  return code.startsWith("22") && routine !== "exec_stmt_raise";
}

function invalidValuesError(
  cause: pg.DatabaseError,
  values: readonly RequestValue[],
  { version }: ErrorContext,
): HttpError {
  const message = explainValueError(cause, values);
  const fields = fieldNamesOf(values);
  if (fields === null) return invalidIdError(version, message, cause);
  const details = fields.map((field) => ({ field, message }));
  return new HttpError(400, "VALIDATION_ERROR", message, { ...(details.length > 0 && { details }), cause });
}

/** Valid values of Postgres's types, by their names. */
const FORMATS: Readonly<Record<string, string>> = {
  timestamptz: "a date and time such as 2026-01-31T12:00:00Z",
  timestamp: "a date and time such as 2026-01-31T12:00:00",
  date: "a date such as 2026-01-31",
  timetz: "a time such as 12:30:00Z",
  time: "a time such as 12:30:00",
  interval: "an interval such as P1DT2H",
  inet: "an IP address such as 192.0.2.1",
  cidr: "a network such as 192.0.2.0/24",
  macaddr: "a MAC address such as 08:00:2b:01:02:03",
  json: "JSON",
  jsonb: "JSON",
  xml: "XML",
  bytea: "bytes such as \\x01ff",
  point: "a point such as (1,2)",
  money: "an amount such as 12.34",
  tsquery: "a query such as fat & rat",
};
/** Messages for values whose format is right, by SQLSTATE. */
const VALUE_FAULTS: Readonly<Record<string, string>> = {
  "22001": "A text is too long.",
  "22003": "A number is out of range.",
  "22008": "There is no such day or time.",
  "22021": "A text has a character that cannot be stored.",
  "22P05": "A text has a character that cannot be stored.",
  "54000": "A value is too long.",
};

function explainValueError({ code = "" }: pg.DatabaseError, [first, ...others]: readonly RequestValue[]): string {
  const fault = VALUE_FAULTS[code];
  if (fault) return fault;
  const format = first && formatOf(first.type);
  const isSame = others.every(({ type }) => formatOf(type) === format);
  return format && isSame ? `This must be ${format}.` : INVALID_VALUE;
}

function formatOf(declaredType: DataType): string {
  const type = baseTypeOf(declaredType);
  if (type.kind === "array") return `a list, each item ${formatOf(type.element)}`;
  if (type.kind === "range") return "a range such as [a,b) whose bounds are in order";
  return (type.schema === "pg_catalog" ? FORMATS[type.name] : undefined) ?? `a valid ${type.name}`;
}

/** Returns the names of the fields; null if one of the values is part of the path. */
function fieldNamesOf(values: readonly RequestValue[]): readonly string[] | null {
  const fields = [...new Set(values.map(({ field }) => field))];
  return fields.every((field) => field !== null) ? fields : null;
}

type ErrorDetails = { readonly status: number; readonly message: string; readonly faults: readonly FieldError[] };

function toSqlStateError(
  cause: pg.DatabaseError,
  { status, message, faults }: ErrorDetails,
  { collection, version }: ErrorContext,
): HttpError {
  const code = cause.code!;
  const extra = { ...(faults.length > 0 && { details: faults }), cause };
  switch (code) {
    case "23502":
      return new HttpError(400, errorCodesOf(version).missingField, message, extra);
    case "23514":
      if (collection?.plain) return new HttpError(400, "VALIDATION_ERROR", message, extra);
      return new HttpError(422, "VALIDATION_ERROR", message, { ...extra, beside: { errors: faults } });
    case "25006":
      return new HttpError(403, "PERMISSION_DENIED", message, extra);
    case "40001":
    case "40P01":
    case "55P03":
    case "23P01":
      return new HttpError(409, "RESOURCE_CONFLICT", message, extra);
    case "57014":
      return new HttpError(504, code, message, extra);
    default:
      return new HttpError(status, code, message, extra);
  }
}

function fieldNameOf(column: string, { collection, version }: ErrorContext): string {
  return collection?.fields.find((field) => field.column.name === column)?.name ?? fieldNamingOf(version)(column);
}

/** Hides an error that the client did not cause and whose message names database objects. */
function hideDetails(cause: pg.DatabaseError): HttpError {
  return toHttpError(new Error(cause.message, { cause }));
}

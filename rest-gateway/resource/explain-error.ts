import pg from "pg";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import {
  type DatabaseErrorMessage,
  databaseErrorMessage,
  invalidValueMessage,
} from "../../engine/catalog/database-error-message.ts";
import { baseTypeOf } from "../../engine/catalog/types.ts";
import {
  ANONYMOUS_NOT_SERVED,
  ContextError,
  isRoleRefused,
  isSchemaOutdated,
  SCHEMA_CHANGED_MESSAGE,
} from "../../engine/database/database-errors.ts";
import { ApiError, type FieldError, unavailable } from "../../engine/errors.ts";
import { HttpError, toHttpError, withBearerChallenge } from "../../http/http-error.ts";
import type { Collection } from "./collections.ts";
import { ambiguousRow, errorCodesOf, invalidIdError, permissionDenied } from "./errors.ts";
import { fieldNamingOf } from "./fields.ts";
import { findUnreadableValues, type SentValue } from "./sent-values.ts";

type ErrorContext = {
  readonly anonymous: boolean;
  readonly catalog: Catalog;
  readonly version: number;
  /** Null if the error occurred before it was known. */
  readonly collection: Collection | null;
  /** The values of the request that Postgres may have rejected. */
  readonly sent: () => readonly SentValue[];
};

/** Turns any error into one of the plain REST interface, with the comment of the violated constraint and its field. */
export function explainError(thrown: unknown, context: ErrorContext): HttpError {
  return withBearerChallenge(toResourceError(thrown, context));
}

function toResourceError(thrown: unknown, context: ErrorContext): HttpError {
  if (thrown instanceof ContextError) {
    if (context.anonymous && isRoleRefused(thrown)) {
      return new HttpError(401, "AUTH_REQUIRED", ANONYMOUS_NOT_SERVED, { cause: thrown });
    }
    return new HttpError(401, "INVALID_TOKEN", "The role of the credential does not exist.", { cause: thrown });
  }
  if (thrown instanceof ApiError && thrown.code === "PGRST124") return ambiguousRow();
  if (!(thrown instanceof pg.DatabaseError)) return toHttpError(thrown);
  if (thrown.code === "42501") return permissionDenied(context);
  if (isSchemaOutdated(thrown)) return toHttpError(unavailable(SCHEMA_CHANGED_MESSAGE, thrown));
  const valueMessage = invalidValueMessage(thrown);
  const general = toHttpError(thrown, context);
  const sentence: DatabaseErrorMessage | null =
    valueMessage === null ? databaseErrorMessage(thrown, context.catalog) : { message: valueMessage };
  if (!sentence) return general.status >= 500 ? general : hideDetails(thrown);
  const values = sentence.column ? [] : findUnreadableValues(thrown, context.sent());
  const text = formatMessage(thrown, values) ?? sentence.message;
  const message = sentence.hint ? `${text} ${sentence.hint}` : text;
  const fields = sentence.column ? [fieldNameOf(sentence.column, context)] : fieldNamesOf(values);
  if (fields === null) return invalidIdError(context.version, message, thrown);
  const faults = fields.map((field) => ({ field, message: text }));
  if (valueMessage !== null)
    return new HttpError(400, "VALIDATION_ERROR", valueMessage, { details: faults, cause: thrown });
  return toSqlStateError(thrown, { status: general.status, message, faults }, context);
}

/** SQLSTATEs of values that Postgres cannot parse; its own message is used unless the type has a known format. */
const UNREADABLE_VALUE_CODES: readonly (string | undefined)[] = ["22007", "22P02"];
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

function formatMessage({ code }: pg.DatabaseError, [first, ...others]: readonly SentValue[]): string | null {
  if (!first || !UNREADABLE_VALUE_CODES.includes(code)) return null;
  const type = baseTypeOf(first.type);
  const isSame = others.every((other) => baseTypeOf(other.type).oid === type.oid);
  const format = isSame && type.schema === "pg_catalog" ? FORMATS[type.name] : undefined;
  return format ? `This must be ${format}.` : null;
}

/** Null if one of the values is part of the path. */
function fieldNamesOf(values: readonly SentValue[]): readonly string[] | null {
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

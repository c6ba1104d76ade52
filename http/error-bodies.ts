import type { FieldError } from "#runtime";
import { errorCodeOf, type HttpError } from "./http-error.ts";

/** PostgREST's codes for errors that have a name here. */
const TABLE_CODES: Readonly<Record<string, string>> = {
  TOKEN_EXPIRED: "PGRST303",
  VERIFICATION_FAILED: "PGRST303",
  INVALID_TOKEN: "PGRST301",
  AUTH_REQUIRED: "PGRST302",
  METHOD_NOT_ALLOWED: "PGRST117",
  RESOURCE_NOT_FOUND: "PGRST125",
};

/** PostgREST's words, which clients compare, for errors that say more here. */
const TABLE_MESSAGES: Readonly<Record<string, string>> = {
  PGRST003: "Timed out acquiring connection from connection pool.",
};

export type ErrorVerbosity = "verbose" | "minimal";

/** Returns the body in the table interface. */
export function toTableBody(error: HttpError) {
  const { code, details, hint, beside } = error;
  return { code: TABLE_CODES[code] ?? code, details, hint, message: tableMessageOf(error), ...beside };
}

/** The message for a rejected credential is the description in its challenge. */
function tableMessageOf({ code, message, challenge }: HttpError): string {
  if (challenge?.error) return challenge.description;
  return TABLE_MESSAGES[code] ?? message;
}

/** Returns the same body without details, for deployments that hide them. */
export function toMinimalTableBody(error: HttpError) {
  const { code, message } = toTableBody(error);
  return { code, message, ...error.beside };
}

type ErrorRemarks = { readonly details?: HttpError["details"]; readonly hint?: HttpError["hint"] };

/** Returns the details and the hint of the table interface, under the same names; empty if there are none, or the deployment hides them. */
export function remarksOf(
  { details, hint }: Pick<HttpError, "details" | "hint">,
  verbosity: ErrorVerbosity,
): ErrorRemarks {
  if (verbosity === "minimal") return {};
  return { ...(details !== null && { details }), ...(hint !== null && { hint }) };
}

/** Returns GraphQL's entry in `errors`, without its path and locations. */
export function toGraphQLBody(error: HttpError, verbosity: ErrorVerbosity) {
  return { message: error.message, extensions: { code: errorCodeOf(error), ...remarksOf(error, verbosity) } };
}

/** Returns the reason that a channel gives for an error. */
export function toChannelReason(error: HttpError) {
  return { reason: `${errorCodeOf(error)}: ${error.message}` };
}

export type ErrorBodyShape = "nested" | "detail" | "flat" | "spring";

type EnvelopeContext = {
  readonly requestId: string;
  readonly at: Date;
  readonly fieldErrors?: readonly FieldError[];
};

/** Returns the body in the conventional interface, in the variant that the deployment has chosen. */
export function toEnvelope(error: HttpError, shape: ErrorBodyShape, context: EnvelopeContext): object {
  return { ...toVariant(error, shape, context), ...error.beside };
}

/** Returns the joined messages of each field. */
function messagesByField(fieldErrors: readonly FieldError[]): Readonly<Record<string, string>> {
  const byField = Object.groupBy(fieldErrors, ({ field }) => field);
  const entries = Object.entries(byField).map(([field, errors]) => [
    field,
    errors!.map(({ message }) => message).join(" "),
  ]);
  return Object.fromEntries(entries);
}

function toVariant(
  error: HttpError,
  shape: ErrorBodyShape,
  { requestId, at, fieldErrors = [] }: EnvelopeContext,
): object {
  const code = errorCodeOf(error);
  const { message, status } = error;
  const timestamp = at.toISOString();
  switch (shape) {
    case "detail":
      return { detail: { code, message } };
    case "flat":
      return { error: code, message, field: fieldErrors[0]?.field ?? null };
    case "spring":
      return {
        timestamp,
        status,
        error: { code, message, fields: messagesByField(fieldErrors) },
      };
    case "nested":
      return {
        error: { code, message, details: fieldErrors, requestId, timestamp, documentation: `/docs/errors#${code}` },
      };
  }
}

import { isSafeError } from "grafast";
import { GraphQLError, type GraphQLFormattedError, Kind } from "grafast/graphql";
import pg, { type DatabaseError } from "pg";
import type { AuthenticationResult, Authenticator } from "#accounts/identity";
import { type Catalog, INVALID_VALUE, invalidValueMessage, databaseErrorMessage as sentenceOfSql } from "#catalog";
import { type ErrorVerbosity, errorCodeOf, type HttpError, remarksOf, toHttpError } from "#http";
import type { KeyedCounter } from "#http/observability";
import { nestedPathOf } from "#planner";
import { UnsuccessfulResult } from "#plugins";
import {
  ANONYMOUS_NOT_SERVED,
  ContextError,
  clientDetailOf,
  isContextRefused,
  isRoleRefused,
  isSchemaOutdated,
  SCHEMA_CHANGED_MESSAGE,
} from "#postgres/database";
import { ApiError, type ApiErrorDetails } from "#runtime";
import { isJsonObject } from "#runtime/json";
import type { Logger } from "#runtime/log";
import { GraphqlRefusal } from "../documents/graphql-refusal.ts";
import type { IntrospectionAccess } from "../documents/introspection-access.ts";
import { LiveQueryFailure } from "./live-failure.ts";
import { NESTED_KEY_SEPARATOR } from "./rows-writer.ts";

type GraphqlErrorAudience = { readonly authentication: AuthenticationResult; readonly requestId: string };

export type ExplainError = (error: GraphQLError, audience: GraphqlErrorAudience) => GraphQLFormattedError;

type ErrorExplainerOptions = {
  readonly catalog: () => Catalog;
  readonly authenticator: () => Authenticator;
  readonly introspection: IntrospectionAccess;
  readonly errorVerbosity: ErrorVerbosity;
  readonly log: Pick<Logger, "error">;
  readonly errors?: KeyedCounter;
};

/** Converts any error of an operation to its entry in `errors`: a message, a code, and the details and the hint of the table interface. */
export function makeErrorExplainer({
  catalog,
  authenticator,
  introspection,
  errorVerbosity,
  log,
  errors,
}: ErrorExplainerOptions): ExplainError {
  const maskInternalError = (error: GraphQLError, requestId: string): ErrorMeaning => {
    log.error({ request: requestId, path: error.path?.join("."), err: error.originalError ?? error }, "internal error");
    const { message, hint } = toHttpError(undefined);
    return { message, code: "INTERNAL_ERROR", requestId, hint };
  };

  const meaningOfDatabase = (error: pg.DatabaseError, { caller }: AuthenticationResult): ErrorMeaning | null =>
    // A caller with the anon key is anonymous too.
    meaningOfDatabaseError(error, {
      anonymous: caller.role === authenticator().anonymous.role,
      role: caller.role,
      catalog: catalog(),
    });

  return (error, { authentication, requestId }) => {
    const original = error.originalError;
    const meaningOfKnown =
      original instanceof pg.DatabaseError ? meaningOfDatabase(original, authentication) : meaningOf(error);
    const meaning = meaningOfKnown ?? maskInternalError(error, requestId);
    const { message, details = null, hint = null, ...own } = withTokenExpiry(meaning, authentication);
    const inputPath = inputPathOf(original);
    const remarks = remarksOf({ details: withoutPath(details), hint }, errorVerbosity);
    const extensions = { ...own, ...remarks, ...(inputPath && { inputPath }) };
    errors?.add(extensions.code);
    return {
      message: introspection.redact(message, authentication.caller.role),
      ...(error.locations && { locations: error.locations }),
      ...(error.path && { path: error.path }),
      extensions,
    };
  };
}

type ErrorMeaning = GraphqlErrorMessage & {
  readonly code: string;
  readonly details?: ApiErrorDetails | null;
  readonly hint?: string | null;
  readonly requestId?: string;
  /** The faults that the result of a mutation lists. */
  readonly errors?: unknown;
};

/** GraphQL's numbers are finite, and a Postgres array may be multidimensional, whatever its declaration. */
const UNREPRESENTABLE_VALUE = /^(Int|Float|String|Boolean|ID) cannot represent /;

/** How graphql-js prints an ExactNumber. */
const PRINTED_EXACT_NUMBER = /\{ rawJSON: "([^"]*)" \}/g;

/** Null for unexpected errors. */
function meaningOf(error: GraphQLError): ErrorMeaning | null {
  const original = error.originalError;
  if (original instanceof UnsuccessfulResult) {
    const { message, faults } = original;
    return { message, code: "UNSUCCESSFUL_RESULT", ...(faults !== null && { errors: faults }) };
  }
  if (original instanceof ApiError) return meaningOfApiError(toHttpError(original));
  // The client has disconnected: nobody reads this, and it is not an error to log.
  if (original?.name === "AbortError") return { message: "The request was aborted.", code: "SERVICE_UNAVAILABLE" };
  if (original && isStringifyOverflow(original))
    return { message: "A value is nested too deeply.", code: "VALIDATION_ERROR" };
  const { code } = error.extensions;
  if (typeof code === "string") return { message: error.message, code };
  if (original && isSafeError(original)) return { message: error.message, code: "VALIDATION_ERROR" };
  // The value of a variable was refused; nothing was executed.
  if (error.nodes?.[0]?.kind === Kind.VARIABLE_DEFINITION)
    return { message: error.message.replaceAll(PRINTED_EXACT_NUMBER, "$1"), code: "VALIDATION_ERROR" };
  if (UNREPRESENTABLE_VALUE.test(error.message)) return { message: error.message, code: "VALIDATION_ERROR" };
  if (/^Cannot return null for non-nullable field /.test(error.message)) {
    return { message: error.message, code: "RESOURCE_NOT_FOUND" };
  }
  return null;
}

/** True for a value that JSON.parse can read and JSON.stringify cannot write, from about 5,000 levels. */
function isStringifyOverflow({ name, stack = "" }: Error): boolean {
  return name === "RangeError" && /^.*call stack.*\n\s+at JSON\.stringify /.test(stack);
}

/** SQLSTATEs whose code differs from the other interfaces'. */
const CODE_OVERRIDES: Readonly<Record<string, string>> = { "25006": "PERMISSION_DENIED", "55P03": "RESOURCE_CONFLICT" };

/** An unknown table name as a regclass value has the SQLSTATE of an invalid statement. */
const PARAMETER_CONTEXT = /^(unnamed portal|portal ".*") parameter /m;

type ErrorViewer = { readonly anonymous: boolean; readonly role: string; readonly catalog: Catalog };

function meaningOfDatabaseError(error: pg.DatabaseError, viewer: ErrorViewer): ErrorMeaning | null {
  const { anonymous } = viewer;
  if (error instanceof ContextError && isContextRefused(error)) {
    if (anonymous && isRoleRefused(error)) return { message: ANONYMOUS_NOT_SERVED, code: "AUTH_REQUIRED" };
    return { message: "This token's role is not allowed here.", code: "PERMISSION_DENIED" };
  }
  const remarks = { details: clientDetailOf(error), hint: error.hint ?? null };
  const invalidValue = invalidValueMessage(error);
  if (invalidValue) return { message: invalidValue, code: "VALIDATION_ERROR", ...remarks };
  if (isSchemaOutdated(error)) return { message: SCHEMA_CHANGED_MESSAGE, code: "SERVICE_UNAVAILABLE" };
  const httpError = toHttpError(error, { anonymous });
  const code = CODE_OVERRIDES[error.code ?? ""] ?? errorCodeOf(httpError);
  if (code === "INTERNAL_ERROR") return null;
  if (code === "SERVICE_UNAVAILABLE") return { message: httpError.message, code };
  if (error.code === "42501" && code === "AUTH_REQUIRED") return { message: "Sign in to do this.", code, ...remarks };
  const sentence = graphqlMessageOf(error, viewer);
  if (sentence) return { ...sentence, code, ...remarks };
  return PARAMETER_CONTEXT.test(error.where ?? "")
    ? { message: INVALID_VALUE, code: "VALIDATION_ERROR", ...remarks }
    : null;
}

function meaningOfApiError(error: HttpError): ErrorMeaning | null {
  const { message, details, hint } = error;
  const code = errorCodeOf(error);
  return code === "INTERNAL_ERROR" ? null : { message, code, details, hint };
}

/** A caller with an expired token needs a new token rather than to sign in. */
function withTokenExpiry(meaning: ErrorMeaning, { rejection: refusal }: AuthenticationResult): ErrorMeaning {
  if (meaning.code !== "AUTH_REQUIRED" || refusal?.code !== "TOKEN_EXPIRED") return meaning;
  return { message: "Your token has expired: refresh it, or sign in again.", code: "AUTH_EXPIRED" };
}

/** Wraps an error of the request as a whole. */
export function toGraphQLError(error: unknown): GraphQLError {
  if (error instanceof GraphQLError) return error;
  return new GraphQLError(error instanceof Error ? error.message : String(error), {
    originalError: error instanceof Error ? error : new Error(String(error)),
  });
}

/** The list for `errors` in the response to a request that has failed as a whole. */
export function errorsOf(thrown: unknown): readonly GraphQLError[] {
  const isList = thrown instanceof GraphqlRefusal || thrown instanceof LiveQueryFailure;
  return isList ? thrown.errors : [toGraphQLError(thrown)];
}

/** The client's message for a Postgres error, and the input field that it is about. */
type GraphqlErrorMessage = { readonly message: string; readonly field?: string };

/** Null for errors that the client did not cause and should not see. */
function graphqlMessageOf(error: DatabaseError, { catalog, role }: ErrorViewer): GraphqlErrorMessage | null {
  const sentence = sentenceOfSql(error, catalog, role);
  if (!sentence) return null;
  const { column, message } = sentence;
  return { message, ...(column && { field: toFieldName(column) }) };
}

/** `parent_id` is the input's `parentId`. */
function toFieldName(column: string): string {
  return column.replace(/_+(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** The place in the input of a mutation with related rows where the error occurred; `*` is an unknown row of a list. */
function inputPathOf(error: Error | undefined): readonly (string | number)[] | null {
  const details = error instanceof ApiError ? error.details : null;
  const path = isJsonObject(details) && typeof details.path === "string" ? details.path : nestedPathOf(error);
  return path ? toInputPath(path) : null;
}

/** `lines:0/2/unit_price` is `["lines", 2, "unitPrice"]`. */
function toInputPath(path: string): (string | number)[] {
  return path.split("/").map((part) => {
    if (/^\d+$/.test(part)) return Number(part);
    const end = part.indexOf(NESTED_KEY_SEPARATOR);
    return end < 0 ? toFieldName(part) : part.slice(0, end);
  });
}

/** The path is in `extensions.inputPath`, as GraphQL spells it. */
function withoutPath(details: ApiErrorDetails | null): ApiErrorDetails | null {
  if (!isJsonObject(details) || Array.isArray(details)) return details;
  const { path, ...rest } = details;
  return Object.keys(rest).length > 0 ? rest : null;
}

/** The `extensions` of a response. */
export type ResponseExtensions = {
  /** Why the operation ran as anonymous although the request has a credential. */
  readonly authentication?: { readonly code: string; readonly message: string };
  /** For live queries whose client takes patches: the LSN of the result, and its changes since the result before. */
  readonly live?: { readonly position: string; readonly patch?: unknown };
};

/** `own`: the extensions of the result. */
export function responseExtensions(
  { rejection: refusal }: AuthenticationResult,
  own?: ResponseExtensions,
): ResponseExtensions | undefined {
  if (!refusal) return own;
  return { ...own, authentication: { code: errorCodeOf(toHttpError(refusal)), message: refusal.message } };
}

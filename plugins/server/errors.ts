import pg, { type DatabaseError } from "pg";
import { isSafeError } from "postgraphile/grafast";
import { GraphQLError, type GraphQLFormattedError, Kind } from "postgraphile/graphql";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import {
  databaseErrorMessage as sentenceOfSql,
  valueTooLongMessage,
} from "../../engine/catalog/database-error-message.ts";
import {
  ANONYMOUS_NOT_SERVED,
  ContextError,
  isRoleRefused,
  isSchemaOutdated,
  SCHEMA_CHANGED_MESSAGE,
} from "../../engine/database/database-errors.ts";
import { ApiError, errorCodeOf, toApiError, toGraphQLBody } from "../../engine/errors.ts";
import type { AuthenticationResult, Authenticator } from "../../engine/identity/authenticator.ts";
import type { KeyedCounter } from "../../engine/observability/counters.ts";
import type { Logger } from "../../engine/output/log.ts";
import type { IntrospectionAccess } from "./introspection-access.ts";

type GraphqlErrorAudience = { readonly authentication: AuthenticationResult; readonly requestId: string };

export type ExplainError = (error: GraphQLError, audience: GraphqlErrorAudience) => GraphQLFormattedError;

type ErrorExplainerOptions = {
  readonly catalog: () => Catalog;
  readonly authenticator: () => Authenticator;
  readonly introspection: IntrospectionAccess;
  readonly log: Pick<Logger, "error">;
  readonly errors?: KeyedCounter;
};

/** Turns any error of an operation into its entry in `errors`: a sentence for people and a code for programs. */
export function makeErrorExplainer({
  catalog,
  authenticator,
  introspection,
  log,
  errors,
}: ErrorExplainerOptions): ExplainError {
  const maskInternalError = (error: GraphQLError, requestId: string): ErrorMeaning => {
    log.error({ request: requestId, path: error.path?.join("."), err: error.originalError ?? error }, "internal error");
    return { message: "Internal error", code: "INTERNAL_ERROR", requestId };
  };

  const meaningOfDatabase = (error: pg.DatabaseError, { caller }: AuthenticationResult): ErrorMeaning | null =>
    // With the key of strangers one is a stranger too.
    meaningOfDatabaseError(error, { anonymous: caller.role === authenticator().anonymous.role, catalog: catalog() });

  return (error, { authentication, requestId }) => {
    const original = error.originalError;
    const meaningOfKnown =
      original instanceof pg.DatabaseError ? meaningOfDatabase(original, authentication) : meaningOf(error);
    const meaning = meaningOfKnown ?? maskInternalError(error, requestId);
    const { message, ...extensions } = withTokenExpiry(meaning, authentication);
    errors?.add(extensions.code);
    return {
      message: introspection.redact(message, authentication.caller.role),
      ...(error.locations && { locations: error.locations }),
      ...(error.path && { path: error.path }),
      extensions,
    };
  };
}

type ErrorMeaning = GraphqlErrorMessage & { readonly code: string; readonly requestId?: string };

/** GraphQL's numbers are finite, and a list of Postgres may have lists in it, whatever its column says. */
const UNREPRESENTABLE_VALUE = /^(Int|Float|String|Boolean|ID) cannot represent /;

/** Null for what nobody foresaw. */
function meaningOf(error: GraphQLError): ErrorMeaning | null {
  const original = error.originalError;
  if (original instanceof ApiError) return meaningOfApiError(original);
  // The client has left: nobody reads this, and it is no fault to log.
  if (original?.name === "AbortError") return { message: "The request was aborted.", code: "SERVICE_UNAVAILABLE" };
  if (original && isStringifyOverflow(original))
    return { message: "A value is nested too deeply.", code: "VALIDATION_ERROR" };
  const { code } = error.extensions;
  if (typeof code === "string") return { message: error.message, code };
  if (original && isSafeError(original)) return { message: error.message, code: "VALIDATION_ERROR" };
  // A variable's value was refused; nothing was executed.
  if (error.nodes?.[0]?.kind === Kind.VARIABLE_DEFINITION) return { message: error.message, code: "VALIDATION_ERROR" };
  if (UNREPRESENTABLE_VALUE.test(error.message)) return { message: error.message, code: "VALIDATION_ERROR" };
  if (/^Cannot return null for non-nullable field /.test(error.message) && !original) {
    return { message: error.message, code: "RESOURCE_NOT_FOUND" };
  }
  return null;
}

/** A value that JSON.parse can read and JSON.stringify cannot write: about 5,000 levels. */
function isStringifyOverflow({ name, stack = "" }: Error): boolean {
  return name === "RangeError" && /^.*call stack.*\n\s+at JSON\.stringify /.test(stack);
}

/** By SQLSTATE: what has another code elsewhere. */
const CODE_OVERRIDES: Readonly<Record<string, string>> = { "25006": "PERMISSION_DENIED", "55P03": "RESOURCE_CONFLICT" };

/** The name of a table, as a value of type regclass, that there is not has the code of a broken statement. */
const PARAMETER_CONTEXT = /^(unnamed portal|portal ".*") parameter /;

type ErrorViewer = { readonly anonymous: boolean; readonly catalog: Catalog };

function meaningOfDatabaseError(error: pg.DatabaseError, { anonymous, catalog }: ErrorViewer): ErrorMeaning | null {
  if (error instanceof ContextError) {
    if (anonymous && isRoleRefused(error)) return { message: ANONYMOUS_NOT_SERVED, code: "AUTH_REQUIRED" };
    return { message: "The role of this token may not be used here.", code: "PERMISSION_DENIED" };
  }
  const tooLong = valueTooLongMessage(error);
  if (tooLong) return { message: tooLong, code: "VALIDATION_ERROR" };
  if (isSchemaOutdated(error)) return { message: SCHEMA_CHANGED_MESSAGE, code: "SERVICE_UNAVAILABLE" };
  const known = toApiError(error, { anonymous });
  const code = CODE_OVERRIDES[error.code ?? ""] ?? toGraphQLBody(known).extensions.code;
  if (code === "INTERNAL_ERROR") return null;
  if (code === "SERVICE_UNAVAILABLE") return { message: known.message, code };
  if (error.code === "42501" && code === "AUTH_REQUIRED") return { message: "Sign in to do this.", code };
  const sentence = graphqlMessageOf(error, catalog);
  if (sentence) return { ...sentence, code };
  return PARAMETER_CONTEXT.test(error.where ?? "")
    ? { message: "A value is not acceptable.", code: "VALIDATION_ERROR" }
    : null;
}

function meaningOfApiError(error: ApiError): ErrorMeaning | null {
  const { message, extensions } = toGraphQLBody(error);
  return extensions.code === "INTERNAL_ERROR" ? null : { message, code: extensions.code };
}

/** Who showed a token that has expired needs a new one, not to be told to sign in. */
function withTokenExpiry(meaning: ErrorMeaning, { rejection: refusal }: AuthenticationResult): ErrorMeaning {
  if (meaning.code !== "AUTH_REQUIRED" || refusal?.code !== "TOKEN_EXPIRED") return meaning;
  return { message: "Your token has expired: refresh it, or sign in again.", code: "AUTH_EXPIRED" };
}

/** The same for an error of the request as a whole. */
export function toGraphQLError(error: unknown): GraphQLError {
  if (error instanceof GraphQLError) return error;
  return new GraphQLError(error instanceof Error ? error.message : String(error), {
    originalError: error instanceof Error ? error : new Error(String(error)),
  });
}

/** What people are told of an error of Postgres, and which field of the input it is about. */
type GraphqlErrorMessage = { readonly message: string; readonly field?: string; readonly hint?: string };

/** Null for what is no doing of the client's, and not meant for its eyes. */
function graphqlMessageOf(error: DatabaseError, catalog: Catalog): GraphqlErrorMessage | null {
  const sentence = sentenceOfSql(error, catalog);
  if (!sentence) return null;
  const { column, ...rest } = sentence;
  return { ...rest, ...(column && { field: toFieldName(column) }) };
}

/** `parent_id` is the input's `parentId`. */
function toFieldName(column: string): string {
  return column.replace(/_+(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** What an answer says beside `data` and `errors`. */
export type ResponseExtensions = {
  /** Why the operation ran as anonymous although a credential was shown. */
  readonly authentication: { readonly code: string; readonly message: string };
};

export function responseExtensions({ rejection: refusal }: AuthenticationResult): ResponseExtensions | undefined {
  return refusal ? { authentication: { code: errorCodeOf(refusal), message: refusal.message } } : undefined;
}

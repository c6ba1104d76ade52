import pg from "pg";
import { isSafeError } from "postgraphile/grafast";
import { GraphQLError, type GraphQLFormattedError, Kind } from "postgraphile/graphql";
import type { AuthenticationResult, Callers } from "../../engine/caller/caller.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import { ANONYMOUS_NOT_SERVED, ContextError, isRoleRefused } from "../../engine/database/faults.ts";
import { isOutdated, JUST_CHANGED } from "../../engine/database/outdated.ts";
import { ApiError, toApiError, toGraphQLBody } from "../../engine/errors.ts";
import type { Logger } from "../../engine/log.ts";
import type { KeyedCounter } from "../../engine/metrics/keyed-counter.ts";
import { lengthFault } from "../../engine/sql-sentences.ts";
import type { Introspection } from "./introspection.ts";
import { type Sentence, sentenceOf } from "./sql-sentences.ts";

export type Audience = { readonly asker: AuthenticationResult; readonly requestId: string };

export type Explain = (error: GraphQLError, audience: Audience) => GraphQLFormattedError;

type ExplainerOptions = {
  readonly catalog: () => Catalog;
  readonly callers: () => Callers;
  readonly introspection: Introspection;
  readonly log: Pick<Logger, "error">;
  readonly errors?: KeyedCounter;
};

/** Turns any error of an operation into its entry in `errors`: a sentence for people and a code for programs. */
export function makeExplainer({ catalog, callers, introspection, log, errors }: ExplainerOptions): Explain {
  const masked = (error: GraphQLError, requestId: string): Meaning => {
    log.error({ request: requestId, path: error.path?.join("."), err: error.originalError ?? error }, "internal error");
    return { message: "Internal error", code: "INTERNAL_ERROR", requestId };
  };

  const ofDatabase = (error: pg.DatabaseError, { caller }: AuthenticationResult): Meaning | null =>
    // With the key of strangers one is a stranger too.
    meaningOfDatabaseError(error, { anonymous: caller.role === callers().anonymous.role, catalog: catalog() });

  return (error, { asker, requestId }) => {
    const original = error.originalError;
    const known = original instanceof pg.DatabaseError ? ofDatabase(original, asker) : meaningOf(error);
    const meaning = known ?? masked(error, requestId);
    const { message, ...extensions } = toldOfExpiry(meaning, asker);
    errors?.add(extensions.code);
    return {
      message: introspection.redact(message, asker.caller.role),
      ...(error.locations && { locations: error.locations }),
      ...(error.path && { path: error.path }),
      extensions,
    };
  };
}

type Meaning = Sentence & { readonly code: string; readonly requestId?: string };

/** GraphQL's numbers are finite, and a list of Postgres may have lists in it, whatever its column says. */
const NOT_SHOWABLE = /^(Int|Float|String|Boolean|ID) cannot represent /;

/** Null for what nobody foresaw. */
function meaningOf(error: GraphQLError): Meaning | null {
  const original = error.originalError;
  if (original instanceof ApiError) return ofApi(original);
  // The client has left: nobody reads this, and it is no fault to log.
  if (original?.name === "AbortError") return { message: "The request was aborted.", code: "SERVICE_UNAVAILABLE" };
  if (original && isTooDeep(original)) return { message: "A value is nested too deeply.", code: "VALIDATION_ERROR" };
  const { code } = error.extensions;
  if (typeof code === "string") return { message: error.message, code };
  if (original && isSafeError(original)) return { message: error.message, code: "VALIDATION_ERROR" };
  // A variable's value was refused; nothing was executed.
  if (error.nodes?.[0]?.kind === Kind.VARIABLE_DEFINITION) return { message: error.message, code: "VALIDATION_ERROR" };
  if (NOT_SHOWABLE.test(error.message)) return { message: error.message, code: "VALIDATION_ERROR" };
  if (/^Cannot return null for non-nullable field /.test(error.message) && !original) {
    return { message: error.message, code: "RESOURCE_NOT_FOUND" };
  }
  return null;
}

/** A value that JSON.parse can read and JSON.stringify cannot write: about 5,000 levels. */
function isTooDeep({ name, stack = "" }: Error): boolean {
  return name === "RangeError" && /^.*call stack.*\n\s+at JSON\.stringify /.test(stack);
}

/** By SQLSTATE: what has another code elsewhere. */
const CODES: Readonly<Record<string, string>> = { "25006": "PERMISSION_DENIED", "55P03": "RESOURCE_CONFLICT" };

/** The name of a table, as a value of type regclass, that there is not has the code of a broken statement. */
const OF_A_VALUE = /^(unnamed portal|portal ".*") parameter /;

type Beholder = { readonly anonymous: boolean; readonly catalog: Catalog };

function meaningOfDatabaseError(error: pg.DatabaseError, { anonymous, catalog }: Beholder): Meaning | null {
  if (error instanceof ContextError) {
    if (anonymous && isRoleRefused(error)) return { message: ANONYMOUS_NOT_SERVED, code: "AUTH_REQUIRED" };
    return { message: "The role of this token may not be used here.", code: "PERMISSION_DENIED" };
  }
  const tooLong = lengthFault(error);
  if (tooLong) return { message: tooLong, code: "VALIDATION_ERROR" };
  if (isOutdated(error)) return { message: JUST_CHANGED, code: "SERVICE_UNAVAILABLE" };
  const known = toApiError(error, { anonymous });
  const code = CODES[error.code ?? ""] ?? toGraphQLBody(known).extensions.code;
  if (code === "INTERNAL_ERROR") return null;
  if (code === "SERVICE_UNAVAILABLE") return { message: known.message, code };
  if (error.code === "42501" && code === "AUTH_REQUIRED") return { message: "Sign in to do this.", code };
  const sentence = sentenceOf(error, catalog);
  if (sentence) return { ...sentence, code };
  return OF_A_VALUE.test(error.where ?? "")
    ? { message: "A value is not acceptable.", code: "VALIDATION_ERROR" }
    : null;
}

function ofApi(error: ApiError): Meaning | null {
  const { message, extensions } = toGraphQLBody(error);
  return extensions.code === "INTERNAL_ERROR" ? null : { message, code: extensions.code };
}

/** Who showed a token that has expired needs a new one, not to be told to sign in. */
function toldOfExpiry(meaning: Meaning, { refusal }: AuthenticationResult): Meaning {
  if (meaning.code !== "AUTH_REQUIRED" || refusal?.code !== "TOKEN_EXPIRED") return meaning;
  return { message: "Your token has expired: refresh it, or sign in again.", code: "AUTH_EXPIRED" };
}

/** The same for an error of the request as a whole. */
export function asGraphQLError(error: unknown): GraphQLError {
  if (error instanceof GraphQLError) return error;
  return new GraphQLError(error instanceof Error ? error.message : String(error), {
    originalError: error instanceof Error ? error : new Error(String(error)),
  });
}

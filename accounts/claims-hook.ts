import { isDeepStrictEqual } from "node:util";
import pg from "pg";
import { quotedName } from "#postgres/client";
import { ApiError, type ErrorKind } from "#runtime";
import { isJsonObject, toJavaScriptNumber } from "#runtime/json";

type JsonClaims = Readonly<Record<string, unknown>>;

/** The argument of the hook, as for Supabase's custom access token hook. */
type ClaimsHookEvent = {
  /** The uuid of the account. */
  readonly user_id: string;
  /** The method by which the user signed in, or `token_refresh`. */
  readonly authentication_method: string;
  /** The claims of the access token, before it is signed. */
  readonly claims: JsonClaims;
};

/** Calls the SQL function of CLAIMS_HOOK in the transaction that issues a token, and returns the claims to sign. */
export type ClaimsHook = (client: pg.ClientBase, event: ClaimsHookEvent) => Promise<JsonClaims>;

/** Supabase's role for hooks. It has no privileges of its own, so that the function gets only what is granted to it. */
export const CLAIMS_HOOK_ROLE = "supabase_auth_admin";
const TIMEOUT_MS = 2_000;
/** The length is limited because tokens are sent in a header. */
const MAX_CLAIMS_LENGTH = 8_192;

/** Claims that must stay, with a value of the same type. */
const REQUIRED: readonly string[] = ["aud", "email", "phone"];
/** Claims that identify the user and the sign-in. */
const FIXED: readonly string[] = [
  ...["sub", "user_id", "iss", "iat", "type"],
  ...["session_id", "sid", "aal", "required_aal", "amr", "is_anonymous"],
];

/** The settings that SET and SET LOCAL have changed on the connection, except the timeout that is set here. */
const SESSION_SETTINGS = `(
  select pg_catalog.jsonb_object_agg(name, setting)::pg_catalog.text from pg_catalog.pg_settings
  where source operator(pg_catalog.=) 'session' and name operator(pg_catalog.<>) 'statement_timeout')`;
const ENTER = `
  select pg_catalog.current_setting('statement_timeout') as timeout, ${SESSION_SETTINGS} as settings,
    pg_catalog.set_config('statement_timeout', '${TIMEOUT_MS}', true)`;
const CALL = "select auth.call_claims_hook($1, $2::pg_catalog.jsonb) as result";
const LEAVE = `select ${SESSION_SETTINGS} as settings, pg_catalog.set_config('statement_timeout', $1, true)`;

const KINDS: Readonly<Record<number, ErrorKind>> = {
  400: "invalid",
  401: "unauthenticated",
  403: "forbidden",
  404: "notFound",
  409: "conflict",
  422: "invalid",
  429: "rateLimited",
};

export function makeClaimsHook(functionName: string): ClaimsHook {
  const name = quotedName(...functionName.split("."));
  return async (client, event) => {
    const result = await callAsHookRole(client, name, event);
    if (!isJsonObject(result)) throw invalidResult("it is not a JSON object");
    if (isJsonObject(result.error)) throw rejection(result.error);
    const { claims } = result;
    if (!isJsonObject(claims)) throw invalidResult("it has no claims");
    const fault = findFault(event.claims, claims);
    if (fault !== null) throw invalidResult(fault);
    return claims;
  };
}

async function callAsHookRole(client: pg.ClientBase, name: string, event: ClaimsHookEvent): Promise<unknown> {
  try {
    const { rows: before } = await client.query<{ timeout: string; settings: string | null }>(ENTER);
    const { rows } = await client.query<{ result: unknown }>(CALL, [name, JSON.stringify(event)]);
    const { rows: after } = await client.query<{ settings: string | null }>(LEAVE, [before[0]!.timeout]);
    // The error rolls the changes back. Otherwise they would apply to the rest of the transaction, or to others on this connection.
    if (after[0]!.settings !== before[0]!.settings)
      throw failed(new Error("It changes settings, which it may only do in its clause SET"));
    return rows[0]!.result;
  } catch (error) {
    throw error instanceof pg.DatabaseError ? failed(error) : error;
  }
}

function failed(cause: Error): ApiError {
  return new ApiError("internal", "CLAIMS_HOOK_FAILED", "The function of CLAIMS_HOOK failed.", { cause });
}

/** Returns null if the claims may be signed. */
function findFault(before: JsonClaims, after: JsonClaims): string | null {
  const changed = FIXED.find((name) => !isDeepStrictEqual(before[name], after[name]));
  if (changed !== undefined) return `it changes the claim ${changed}`;
  const missing = REQUIRED.find((name) => before[name] !== undefined && typeof after[name] !== typeof before[name]);
  if (missing !== undefined) return `it lacks the claim ${missing}`;
  if (typeof after.role !== "string" || after.role === "") return "the claim role is not the name of a role";
  const expiresAt = toJavaScriptNumber(after.exp);
  if (!Number.isInteger(expiresAt) || expiresAt! > Number(before.exp)) return "it extends the claim exp";
  return JSON.stringify(after).length > MAX_CLAIMS_LENGTH ? `it has more than ${MAX_CLAIMS_LENGTH} characters` : null;
}

function rejection({ http_code: status, message }: JsonClaims): ApiError {
  const text = typeof message === "string" && message !== "" ? message : "The sign-in was refused.";
  return new ApiError(KINDS[Number(status)] ?? "internal", "CLAIMS_HOOK_REJECTED", text);
}

function invalidResult(fault: string): ApiError {
  const message = `The result of CLAIMS_HOOK cannot be used: ${fault}.`;
  return new ApiError("internal", "CLAIMS_HOOK_FAILED", message, { cause: new Error(message) });
}

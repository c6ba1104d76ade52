import type { IncomingHttpHeaders } from "node:http";
import type { Caller, Callers } from "../../engine/caller/caller.ts";
import { ApiError } from "../../engine/errors.ts";
import { readApiKey } from "./api-key.ts";

const SCHEME = "Bearer ";

type Shown = { readonly headers: IncomingHttpHeaders; readonly rawQuery: string };

/**
 * Supabase's two headers: `apikey` says that the client belongs to this deployment, `Authorization` who uses it.
 * Without the latter the key itself is the caller.
 */
export function identifyTableCaller(
  { headers, rawQuery }: Shown,
  callers: Callers,
  requireApiKey: boolean,
): Caller | Promise<Caller> {
  const key = readApiKey(headers, rawQuery);
  const byKey = key === null ? null : callers.identify({ authorization: null, apiKey: key });
  if (byKey === null && requireApiKey) {
    throw new ApiError(401, "AUTH_REQUIRED", "No API key found in request", {
      hint: "No `apikey` request header or url param was found.",
      headers: { "WWW-Authenticate": "Bearer" },
    });
  }
  const { authorization } = headers;
  // Until somebody signs in, supabase-js shows its key as a token, too.
  if (authorization === undefined || (key !== null && isBearer(key, authorization))) return byKey ?? callers.anonymous;
  // A key that is no good is refused even where the token alone would do.
  return byKey instanceof Promise
    ? byKey.then(() => callers.identify({ authorization }))
    : callers.identify({ authorization });
}

function isBearer(token: string, authorization: string): boolean {
  return authorization.length === SCHEME.length + token.length && authorization === SCHEME + token;
}

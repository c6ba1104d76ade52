import type { IncomingHttpHeaders } from "node:http";
import type { Authenticator, Caller } from "#accounts/identity";
import { HttpError } from "#http";
import { readTableApiKey } from "./parse/query-string.ts";

const SCHEME = "Bearer ";

type TableCredentials = { readonly headers: IncomingHttpHeaders; readonly rawQuery: string };

/**
 * Authenticates by Supabase's two headers: `apikey` identifies the deployment's client, `Authorization` the user.
 * Without the latter the key itself is the caller. Tokens of applications are accepted at their resource only.
 */
export function authenticateTableCaller(
  { headers, rawQuery }: TableCredentials,
  authenticator: Authenticator,
  requireApiKey: boolean,
  resource?: string,
): Caller | Promise<Caller> {
  const key = readTableApiKey(headers, rawQuery);
  const byKey = key === null ? null : authenticator.authenticate({ authorization: null, apiKey: key, resource });
  if (byKey === null && requireApiKey) {
    throw new HttpError(401, "AUTH_REQUIRED", "No API key found in request", {
      hint: "No `apikey` request header or url param was found.",
      headers: { "WWW-Authenticate": "Bearer" },
    });
  }
  const { authorization } = headers;
  // Until somebody signs in, supabase-js also sends its key as a token.
  if (authorization === undefined || (key !== null && isBearerToken(key, authorization)))
    return byKey ?? authenticator.anonymous;
  // An invalid key is rejected even if the token alone would suffice.
  return byKey instanceof Promise
    ? byKey.then(() => authenticator.authenticate({ authorization, resource }))
    : authenticator.authenticate({ authorization, resource });
}

function isBearerToken(token: string, authorization: string): boolean {
  return authorization.length === SCHEME.length + token.length && authorization === SCHEME + token;
}

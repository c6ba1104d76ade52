import type { TokenPair } from "#accounts";
import type { ClientSignInResult } from "#accounts/federation";
import { type GatewayResponse, toHttpError } from "#http";
import { authError, translateError } from "./errors.ts";

type Parameters = Readonly<Record<string, string>>;

/** OAuth's names of errors (RFC 6749 §4.1.2.1), by status. */
const OAUTH_ERRORS: Readonly<Record<number, string>> = {
  400: "invalid_request",
  401: "unauthorized_client",
  403: "access_denied",
  502: "temporarily_unavailable",
  503: "temporarily_unavailable",
  504: "temporarily_unavailable",
};

export function redirect({ href }: URL): GatewayResponse {
  return { status: 303, headers: { Location: href, "Referrer-Policy": "no-referrer" }, body: null };
}

export function withQuery(target: URL, parameters: Parameters): URL {
  const url = new URL(target);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url;
}

export function withFragment(target: URL, parameters: Parameters): URL {
  const url = new URL(target);
  url.hash = new URLSearchParams(parameters).toString();
  return url;
}

/** A session as clients read it from the fragment of a redirect. */
export function sessionParameters({ accessToken, refreshToken, expiresIn }: TokenPair): Parameters {
  return {
    access_token: accessToken,
    expires_at: String(Math.floor(Date.now() / 1000) + expiresIn),
    expires_in: String(expiresIn),
    refresh_token: refreshToken,
    token_type: "bearer",
  };
}

/** An error as clients read it from a redirect. Unexpected errors are rethrown, to be logged. */
export function errorParameters(thrown: unknown): Parameters {
  const { status, code, message } = translateError(toHttpError(thrown));
  if (status === 500) throw thrown;
  return { error: OAUTH_ERRORS[status] ?? "invalid_request", error_code: code, error_description: message };
}

/** Redirects at the end of a sign-in through a provider: with a code in the query (PKCE), tokens in the fragment, or an error. */
export function redirectToClient({ redirectTo, isLink, result }: ClientSignInResult): GatewayResponse {
  const target = new URL(redirectTo);
  if ("code" in result) return redirect(withQuery(target, { code: result.code }));
  if ("tokens" in result) return redirect(withFragment(target, sessionParameters(result.tokens)));
  const isTaken = isLink && result.error.code === "RESOURCE_CONFLICT";
  const parameters = errorParameters(isTaken ? identityTaken() : result.error);
  return redirect(withFragment(withQuery(target, parameters), parameters));
}

function identityTaken() {
  return authError(422, "identity_already_exists", "Identity is already linked to another user");
}

import type { IncomingHttpHeaders } from "node:http";
import {
  API_RESOURCE,
  type AuthenticationResult,
  type Authenticator,
  type Caller,
  type Credentials,
} from "#accounts/identity";
import { type CsrfProtection, readApiKeyParameter, readSessionCookie, setSessionCookie } from "#http";
import type { GraphqlHttpRequest } from "./http-messages.ts";

type AuthenticationDependencies = { readonly authenticator: () => Authenticator; readonly csrf: CsrfProtection };

/** Credential → caller. A rejected credential makes the caller anonymous, and the response says so. */
export async function authenticate(
  request: GraphqlHttpRequest,
  { authenticator, csrf }: AuthenticationDependencies,
): Promise<AuthenticationResult> {
  const session = readSessionCookie(request.headers);
  const authentication = await authenticator().authenticateOrAnonymous({ ...readCredentials(request), session });
  if (authentication.caller.kind === "session") {
    csrf.checkRequest(request, session);
    request.addResponseHeaders(setSessionCookie(session!));
  }
  request.admit(authentication.caller);
  return authentication;
}

/** True if the account was disabled, deleted or changed, if the session or key has ended, or if it has other claims now. */
export async function isRevoked(authenticator: Authenticator, { claims }: Caller): Promise<boolean> {
  return (await authenticator.validateClaims(claims)) !== null;
}

type CredentialSource = { readonly headers: IncomingHttpHeaders; readonly rawQuery: string };

/** `Authorization: Bearer …`, `X-API-Key: …`, `?api_key=…` */
export function readCredentials({ headers, rawQuery }: CredentialSource): Credentials {
  const { authorization = null, "x-api-key": header, apikey } = headers;
  const inHeader = [header, apikey].find((value) => typeof value === "string" && value !== "") as string | undefined;
  return { authorization, apiKey: inHeader ?? readApiKeyParameter(rawQuery), resource: API_RESOURCE };
}

/** Credentials in a socket's init message, since browsers cannot set headers: names in any case, at the top level or in `headers`. */
export function readConnectionCredentials(parameters: unknown): Credentials | null {
  const lowerCased = withLowerCaseKeys(parameters);
  return credentialsAmong(lowerCased) ?? credentialsAmong(withLowerCaseKeys(lowerCased.headers));
}

function credentialsAmong(entries: Readonly<Record<string, unknown>>): Credentials | null {
  const texts = Object.entries(entries).filter((entry): entry is [string, string] => typeof entry[1] === "string");
  const credentials = readCredentials({ headers: Object.fromEntries(texts), rawQuery: "" });
  return credentials.authorization === null && credentials.apiKey === null ? null : credentials;
}

function withLowerCaseKeys(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name.toLowerCase(), member]));
}

import type { AuthorizationRequest } from "./oauth-store.ts";

type Parameters = Readonly<Record<string, string | null>>;

/** Returns the address of the application, with the decision of the server or the user (RFC 6749 §4.1.2, RFC 9207). */
export function toRedirectAddress(
  { redirect_uri, state }: Pick<AuthorizationRequest, "redirect_uri" | "state">,
  issuer: string,
  answer: Parameters,
): string {
  return withParameters(redirect_uri, { ...answer, state, iss: issuer });
}

/** Adds parameters, but keeps the text of the address, which the application may compare. */
export function withParameters(address: string, parameters: Parameters): string {
  const given = Object.entries(parameters).filter((entry): entry is [string, string] => entry[1] !== null);
  const separator = !address.includes("?") ? "?" : /[?&]$/.test(address) ? "" : "&";
  return `${address}${separator}${new URLSearchParams(given)}`;
}

import { OAuthError } from "./oauth-error.ts";

/** Refuses repeated parameters (RFC 6749 §3.1), apart from `resource` (RFC 8707). */
export function refuseRepeated(parameters: URLSearchParams): void {
  const names = [...parameters.keys()].filter((name) => name !== "resource");
  if (new Set(names).size < names.length) throw new OAuthError("invalid_request", "A parameter is sent twice.");
}

import { ApiError } from "#runtime";
import type { Caller } from "./caller.ts";
import type { Claims } from "./claims.ts";
import { CredentialError } from "./credential-error.ts";

/** The resource of the general interfaces, as a path below the public address. */
export const API_RESOURCE = "";

/** The resource of MCP, the only one where scopes of single tables count. */
export const MCP_RESOURCE = "/mcp";

/** The resource of endpoints that describe the token itself: they accept tokens for any of our resources. */
export const ANY_RESOURCE = "*";

/** The rights that the user has granted to the application that holds an access token of our authorization server. */
type OAuthAccess = {
  readonly clientId: string;
  readonly grantId: string;
  /** The address of the resource that the token is for (RFC 8707): its first audience. A second one is JWT_AUDIENCE. */
  readonly resource: string;
  readonly scopes: readonly string[];
};

/** Returns null for the tokens of users themselves, and for those of other issuers. */
export function readOAuthAccess({
  oauth_grant_id: grantId,
  client_id: clientId,
  scope,
  aud,
}: Claims): OAuthAccess | null {
  if (typeof grantId !== "string") return null;
  const resource: unknown = Array.isArray(aud) ? aud[0] : aud;
  const scopes = typeof scope === "string" ? scope.split(" ").filter((each) => each !== "") : [];
  const textOf = (value: unknown) => (typeof value === "string" ? value : "");
  return { clientId: textOf(clientId), grantId, resource: textOf(resource), scopes };
}

/**
 * True if the caller is an application that may only read: it changes nothing and sends nothing, on any interface. Its
 * transactions are read-only; changes and sends outside a transaction call `requireWriteAccess`.
 */
export function isReadOnlyAccess({ claims }: Partial<Pick<Caller, "claims">>): boolean {
  if (claims?.oauth_grant_id === undefined) return false;
  const access = readOAuthAccess(claims);
  if (access === null) return true;
  const { iss } = claims;
  // Only MCP checks the table of each call.
  const isForMcp = typeof iss === "string" && access.resource === resourceAddress(iss, MCP_RESOURCE);
  return !access.scopes.some((scope) => scope === "write" || (isForMcp && scope.startsWith("write:")));
}

/** Refuses applications that may only read. */
export function requireWriteAccess(caller: Pick<Caller, "claims">): void {
  if (!isReadOnlyAccess(caller)) return;
  throw new ApiError("forbidden", "PERMISSION_DENIED", "The user has allowed this application to read only.", {
    hint: "Request an authorization with the scope write.",
  });
}

/**
 * Refuses tokens of applications, except at the resource that they were issued for. An interface without a resource manages
 * accounts or the service, which only users themselves may do.
 */
export function requireResource(
  caller: Caller,
  resource: string | undefined,
  addressOf: ((path: string) => string) | undefined,
): Caller {
  if (caller.claims.oauth_grant_id === undefined) return caller;
  const access = readOAuthAccess(caller.claims);
  if (access === null) throw wrongAudience();
  if (resource === undefined || addressOf === undefined) {
    throw new ApiError("forbidden", "PERMISSION_DENIED", "Applications may not do this for a user; sign in yourself.");
  }
  if (resource === ANY_RESOURCE) {
    const own = addressOf(API_RESOURCE);
    if (access.resource === own || access.resource.startsWith(`${own}/`)) return caller;
  }
  if (access.resource !== addressOf(resource)) throw wrongAudience();
  if (resource === API_RESOURCE && !access.scopes.some((scope) => scope === "read" || scope === "write")) {
    const message = "The user has not granted this application access to data.";
    throw new ApiError("forbidden", "PERMISSION_DENIED", message, {
      hint: "Request an authorization with the scope read or write.",
    });
  }
  return caller;
}

function wrongAudience(): CredentialError {
  return new CredentialError("claimsInvalid", "The token was made for another audience.", "JWT not in audience");
}

/** The address of a resource of this service. */
export function resourceAddress(siteUrl: string, path: string): string {
  return (siteUrl.endsWith("/") ? siteUrl.slice(0, -1) : siteUrl) + path;
}

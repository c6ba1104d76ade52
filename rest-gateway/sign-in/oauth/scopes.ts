/** Scopes of OpenID Connect, which define the claims about the user. */
const IDENTITY_SCOPES = ["openid", "profile", "email", "phone", "offline_access"] as const;

/** The scope of access to data: all data of the user, or one table of it. */
const DATA_SCOPE = /^(?:read|write)(?::[\w$.-]{1,128})?$/;

/** The scopes of a request without scopes. */
const DEFAULT_SCOPES: readonly string[] = ["read"];
const MAX_SCOPES = 100;

/** Returns the scopes that the metadata names; those of single tables are not listed. */
export function supportedScopes(hasOpenId: boolean): readonly string[] {
  return ["read", "write", ...IDENTITY_SCOPES.filter((scope) => hasOpenId || scope !== "openid")];
}

/** Returns the known scopes of a request, each once; none if nothing is left. Unknown ones are ignored, as the specification allows. */
export function readScopes(text: string | null, allowed: string | null, hasOpenId: boolean): readonly string[] {
  const supported = new Set<string>(supportedScopes(hasOpenId));
  const registered = allowed === null ? null : new Set(allowed.split(" "));
  const requested = text === null || text.trim() === "" ? DEFAULT_SCOPES : text.trim().split(/\s+/);
  const isKnown = (scope: string) => supported.has(scope) || DATA_SCOPE.test(scope);
  const mayRequest = (scope: string) => registered === null || registered.has(scope);
  return [...new Set(requested)].filter((scope) => isKnown(scope) && mayRequest(scope)).slice(0, MAX_SCOPES);
}

/** Parses `read:films` to the action and the table; null for scopes about the user. */
export function parseDataScope(
  scope: string,
): { readonly action: "read" | "write"; readonly table: string | null } | null {
  if (!DATA_SCOPE.test(scope)) return null;
  const [action, table] = scope.split(":");
  return { action: action as "read" | "write", table: table ?? null };
}

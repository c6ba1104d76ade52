import { type IssuedToken, isUuid, makeAdministratorTokens, readUserId } from "#accounts";
import { type Claims, canIssueTokens, OPERATOR } from "#accounts/identity";
import { HttpError } from "#http";
import type { StudioUser } from "#operations/admin-types";
import { invalidRequest, resourceNotFound } from "./admin-errors.ts";
import type { AdminServices } from "./admin-request.ts";

/** A token with the claims that the user would have after signing in now. */
export async function tokenAsUser(user: string, actor: Claims, services: AdminServices): Promise<IssuedToken> {
  const { accounts, authenticator } = services;
  const tokens = requireTokens(services);
  const administration = accounts?.administrationBy(OPERATOR);
  const userId = isUuid(user) ? await administration?.findUser(user) : /^[1-9]\d{0,17}$/.test(user) ? user : null;
  const token = accounts && userId ? await tokens.asUser(userId, actor) : null;
  if (!token) throw resourceNotFound("User not found.");
  const rejection = await authenticator.validateClaims(token.claims);
  if (rejection) throw invalidRequest(`This user cannot sign in: ${rejection.message}`);
  return token;
}

export function requireRole(name: string, { catalog }: Pick<AdminServices, "catalog">): void {
  if (!catalog().roles.has(name)) throw invalidRequest(`Requests cannot use the role "${name}".`);
}

export function requireTokens({ asOwner, keys, config }: AdminServices) {
  if (canIssueTokens(keys)) return makeAdministratorTokens({ asOwner, keys, config });
  const message =
    "The settings have only keys that verify tokens: set JWT_PRIVATE_KEY, or send a token of an administrator.";
  throw new HttpError(503, "SERVICE_UNAVAILABLE", message);
}

/** Converts a token to the form of the responses of `/session` and `/view-as`. */
export function issuedToken({ accessToken, claims }: IssuedToken) {
  return { access_token: accessToken, expires_at: Number(claims.exp), user: userOf(claims) };
}

/** Returns null if the claims name no account. */
export function userOf(claims: Claims): StudioUser | null {
  const id = readUserId(claims);
  return id === null ? null : { id, email: textClaim(claims, "email"), name: textClaim(claims, "name") };
}

/** Returns a claim if it is a text: other issuers may send anything. */
export function textClaim(claims: Claims, name: "email" | "name"): string | null {
  const value = claims[name];
  return typeof value === "string" ? value : null;
}

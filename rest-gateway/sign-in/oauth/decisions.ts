import { awaitsConfirmation, isUuid, type UserJson } from "#accounts";
import type { ClientInfo } from "#accounts/identity";
import { HttpError } from "#http";
import type { OAuthServices } from "./oauth-services.ts";
import type { Approval, OpenedAuthorization } from "./oauth-store.ts";
import { toRedirectAddress } from "./redirect-address.ts";

export type Decision = OpenedAuthorization & {
  readonly user: UserJson;
};

/** Opens the request that the signed-in user decides about; throws 404, or 403 for an account that may not grant anything. */
export async function openDecision(
  id: string,
  userId: string,
  { accounts, config, oauthStore: store }: OAuthServices,
): Promise<Decision> {
  const user = await accounts.own.readJson(userId);
  if (user.is_anonymous) throw forbidden("An anonymous account cannot give access. Sign up first.");
  if (!config.autoConfirm && awaitsConfirmation(user)) {
    throw forbidden("Confirm your e-mail address before you give access to your account.");
  }
  const opened = isUuid(id) ? await store.open(id, userId) : null;
  if (!opened) throw authorizationGone();
  return { ...opened, user };
}

/** Approves the request. Returns the address of the application, with the code. */
export async function approve(
  { request }: Decision,
  approval: Approval,
  { accounts, config, oauthStore: store }: OAuthServices,
  clientInfo: ClientInfo,
): Promise<string> {
  const code = await store.approve(request.id, approval, config.oauthGrantDays, clientInfo);
  if (code === null) throw authorizationGone();
  return toRedirectAddress(request, accounts.oauthTokens.issuer(), { code });
}

/** Denies the request. Returns the address of the application, with the refusal. */
export async function deny(
  { request }: Decision,
  userId: string,
  { accounts, oauthStore: store }: OAuthServices,
): Promise<string> {
  if (!(await store.deny(request.id, userId))) throw authorizationGone();
  const answer = { error: "access_denied", error_description: "The user has refused." };
  return toRedirectAddress(request, accounts.oauthTokens.issuer(), answer);
}

function authorizationGone(): HttpError {
  const message =
    "This request has expired, is decided, or was made for somebody else. Begin again in the application.";
  return new HttpError(404, "RESOURCE_NOT_FOUND", message);
}

function forbidden(message: string): HttpError {
  return new HttpError(403, "PERMISSION_DENIED", message);
}

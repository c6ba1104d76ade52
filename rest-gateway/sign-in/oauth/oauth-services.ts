import type { Accounts } from "#accounts";
import type { Authenticator } from "#accounts/identity";
import type { Catalog } from "#catalog";
import type { Config } from "#config";
import type { LimitExpensiveRequest } from "#http";
import type { OAuthStore } from "./oauth-store.ts";

export type OAuthConfig = Pick<
  Config,
  | "autoConfirm"
  | "oauthServer"
  | "oauthDynamicRegistration"
  | "oauthClientDocuments"
  | "oauthConsentUrl"
  | "oauthGrantDays"
  | "mcp"
>;

/** The dependencies of the authorization server's routes and pages. */
export type OAuthServices = {
  readonly accounts: Accounts;
  readonly authenticator: Authenticator;
  readonly catalog: () => Catalog;
  readonly config: OAuthConfig;
  readonly oauthStore: OAuthStore;
  /** Limits registrations, and documents of clients that are fetched. */
  readonly limitExpensive: LimitExpensiveRequest;
};

import { flag, httpUrl, integer, optional, type SettingDefinition, withDefault } from "./setting-readers.ts";

// Settings with one description share a row of docs/settings.md.
const APPLICATIONS = "Applications may register themselves; a `client_id` may be the address of a document about them.";
const LIFETIMES = "Lifetime of access tokens, and of grants.";

/** The authorization server for applications that act for users. */
export const OAUTH_SETTINGS = {
  oauthServer: withDefault("OAUTH_SERVER", flag, "off", "Runs an [OAuth server](oauth-server.md)."),
  oauthDynamicRegistration: withDefault("OAUTH_DYNAMIC_REGISTRATION", flag, "on", APPLICATIONS),
  oauthClientDocuments: withDefault("OAUTH_CLIENT_DOCUMENTS", flag, "on", APPLICATIONS),
  oauthConsentUrl: optional("OAUTH_CONSENT_URL", httpUrl, "Your page for consent. Unset: the service's."),
  oauthAccessSeconds: withDefault("OAUTH_ACCESS_TOKEN_SECONDS", integer(60, 86_400), "3600", LIFETIMES),
  oauthGrantDays: withDefault("OAUTH_GRANT_DAYS", integer(1, 3_650), "90", LIFETIMES),
} satisfies Record<string, SettingDefinition<unknown>>;

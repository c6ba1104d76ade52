import { flag, httpUrl, integer, optional, type SettingDefinition, withDefault } from "./setting-readers.ts";

/** The authorization server for applications that act for users. */
export const OAUTH_SETTINGS = {
  oauthServer: withDefault("OAUTH_SERVER", flag, "off", "Whether the service is an [OAuth server](oauth-server.md)."),
  oauthDynamicRegistration: withDefault(
    "OAUTH_DYNAMIC_REGISTRATION",
    flag,
    "on",
    "Whether applications may register themselves.",
  ),
  oauthClientDocuments: withDefault(
    "OAUTH_CLIENT_DOCUMENTS",
    flag,
    "on",
    "Whether a `client_id` may be the address of a document about the application.",
  ),
  oauthConsentUrl: optional("OAUTH_CONSENT_URL", httpUrl, "Your page for consent. Unset: the service's."),
  oauthAccessSeconds: withDefault(
    "OAUTH_ACCESS_TOKEN_SECONDS",
    integer(60, 86_400),
    "3600",
    "Lifetime of access tokens.",
  ),
  oauthGrantDays: withDefault("OAUTH_GRANT_DAYS", integer(1, 3_650), "90", "Lifetime of grants."),
} satisfies Record<string, SettingDefinition<unknown>>;

import { flag, httpUrl, integer, optional, type SettingDefinition, withDefault } from "./setting-readers.ts";

/** The authorization server for applications that act for users. */
export const OAUTH_SETTINGS = {
  oauthServer: withDefault(
    "OAUTH_SERVER",
    flag,
    "off",
    "Whether applications may ask users for access, and sign users in: an [OAuth 2.1 and OpenID Connect server](oauth-server.md).",
  ),
  oauthDynamicRegistration: withDefault(
    "OAUTH_DYNAMIC_REGISTRATION",
    flag,
    "on",
    "With OAUTH_SERVER: whether applications may register themselves (RFC 7591).",
  ),
  oauthClientDocuments: withDefault(
    "OAUTH_CLIENT_DOCUMENTS",
    flag,
    "on",
    "With OAUTH_SERVER: whether an https address of a document that describes an application may be its `client_id`.",
  ),
  oauthConsentUrl: optional(
    "OAUTH_CONSENT_URL",
    httpUrl,
    "Page of your application that asks users for consent, by `supabase.auth.oauth`. Unset: the page of this service.",
  ),
  oauthAccessSeconds: withDefault(
    "OAUTH_ACCESS_TOKEN_SECONDS",
    integer(60, 86_400),
    "3600",
    "Lifetime of the access tokens of applications.",
  ),
  oauthGrantDays: withDefault(
    "OAUTH_GRANT_DAYS",
    integer(1, 3_650),
    "90",
    "How long an application keeps the access that a user has granted, at most.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

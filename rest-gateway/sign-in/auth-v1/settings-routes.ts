import { jsonResponse } from "#http";
import type { AuthV1Routes, AuthV1Services } from "./auth-v1-request.ts";

const DESCRIPTION = {
  version: "v2.180.0",
  name: "GoTrue",
  description: "The interface of Supabase Auth (GoTrue), by content-service",
};

/** The providers that GoTrue names in its settings, configured or not. */
const KNOWN_PROVIDERS = [
  ...["apple", "azure", "bitbucket", "discord", "facebook", "figma", "fly", "github", "gitlab", "google", "kakao"],
  ...["keycloak", "linkedin", "linkedin_oidc", "notion", "slack", "slack_oidc", "snapchat", "spotify", "twitch"],
  ...["twitter", "workos", "zoom"],
];

/** Routes for settings that clients read before anybody signs in. */
export function settingsRoutes({ accounts, config, federation, keySet }: AuthV1Services): AuthV1Routes {
  return {
    "GET /health": () => jsonResponse(200, DESCRIPTION),
    "GET /settings": async () => {
      const providers = await federation.list();
      const configured = providers.filter(({ kind }) => kind !== "saml").map(({ name }) => [name, true] as const);
      return jsonResponse(200, {
        external: {
          ...Object.fromEntries(KNOWN_PROVIDERS.map((name) => [name, false])),
          ...Object.fromEntries(configured),
          anonymous_users: config.anonymousSignIns,
          email: true,
          phone: accounts.phones !== null,
        },
        disable_signup: !config.signUps,
        mailer_autoconfirm: config.autoConfirm,
        phone_autoconfirm: config.autoConfirm,
        sms_provider: "",
        saml_enabled: providers.some(({ kind }) => kind === "saml"),
      });
    },
    "GET /.well-known/jwks.json": keySet["/.well-known/jwks.json"]!.GET!,
  };
}

import type { CsrfProtection, GatewayRoutes, PatternRoutes } from "#http";
import { authorizeRoutes } from "./authorize-routes.ts";
import { clientAdministrationRoutes, registrationRoutes } from "./client-routes.ts";
import { consentRoutes } from "./consent-page.ts";
import { grantRoutes } from "./grant-routes.ts";
import { metadataRoutes } from "./metadata-routes.ts";
import type { OAuthServices } from "./oauth-services.ts";
import { oauthTokenRoutes } from "./token-routes.ts";

/** The authorization server below `/auth/v1`; nothing unless OAUTH_SERVER is on. */
export function oauthRoutes(services: OAuthServices): PatternRoutes {
  if (!services.config.oauthServer) return {};
  return {
    ...authorizeRoutes(services),
    ...oauthTokenRoutes(services),
    ...registrationRoutes(services),
    ...grantRoutes(services),
    ...clientAdministrationRoutes(services),
  };
}

/** Its page, and where clients find it. */
export function oauthPages(services: OAuthServices & { readonly csrf: CsrfProtection }): GatewayRoutes {
  const { accounts, config } = services;
  if (!config.oauthServer) return {};
  return { ...consentRoutes(services), ...metadataRoutes({ tokens: accounts.oauthTokens, config }) };
}

import type { CsrfProtection, GatewayRoutes, PatternRoutes } from "#http";
import { authorizeRoutes } from "./authorize-routes.ts";
import { consentRoutes } from "./consent-page.ts";
import { metadataRoutes } from "./metadata-routes.ts";
import type { OAuthServices } from "./oauth-services.ts";
import { oauthTokenRoutes } from "./token-routes.ts";

/** Routes for applications at the authorization server, below `/auth/v1`; none unless OAUTH_SERVER is on. */
export function oauthRoutes(services: OAuthServices): PatternRoutes {
  if (!services.config.oauthServer) return {};
  return {
    ...authorizeRoutes(services),
    ...oauthTokenRoutes(services),
  };
}

/** Routes for the server's page, and for the documents by which clients find it. */
export function oauthPages(services: OAuthServices & { readonly csrf: CsrfProtection }): GatewayRoutes {
  const { accounts, config } = services;
  if (!config.oauthServer) return {};
  return { ...consentRoutes(services), ...metadataRoutes({ tokens: accounts.oauthTokens, config }) };
}

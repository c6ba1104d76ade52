import type { Accounts } from "../../engine/auth/accounts.ts";
import type { Callers } from "../../engine/caller/caller.ts";
import { makeCrossSite } from "../../engine/caller/cross-site.ts";
import type { Config } from "../../engine/config/config.ts";
import type { Routes } from "../gateway.ts";
import type { Handler } from "../http.ts";
import type { LimitExpensiveRequest } from "../limits/expensive-request-limit.ts";
import { makeRenderPage, type RenderPage } from "../pages/page.ts";
import { API_KEYS_PATH, apiKeyRoutes } from "./api-key-routes.ts";
import { emailRoutes } from "./email-routes.ts";
import { factorRoutes } from "./factor-routes.ts";
import { federationHandlers } from "./federation/federation-handlers.ts";
import { authPages } from "./pages/auth-pages.ts";
import { makeReadPageRedirect } from "./pages/page-redirect.ts";
import { sessionRoutes } from "./session-routes.ts";
import { tokenRoutes } from "./token-routes.ts";
import { withoutCaching } from "./without-caching.ts";

type AuthRouteOptions = {
  readonly accounts: Accounts;
  readonly callers: Callers;
  readonly config: Pick<Config, "corsOrigins" | "publicUrl" | "passwordPolicy" | "signInRedirects">;
  /** The public URL of the service. */
  readonly siteUrl: () => string;
};

/** Routes for sign-in and accounts. They parse requests and format responses; `engine/auth` has the rules. */
export function authRoutes({
  accounts,
  callers,
  config,
  siteUrl,
  limitExpensive,
}: AuthRouteOptions & { readonly limitExpensive: LimitExpensiveRequest }): Routes {
  const services = { accounts, callers, crossSite: makeCrossSite(config), limitExpensive };
  return withoutCaching({
    ...tokenRoutes(services),
    ...sessionRoutes(services),
    ...factorRoutes(services),
    ...emailRoutes(services),
    ...authPages({
      ...services,
      passwordPolicy: config.passwordPolicy,
      providers: () => accounts.federation.list(),
      readTarget: makeReadPageRedirect(siteUrl, config),
      render: makePageRenderer(config),
    }),
  });
}

/** Handlers for path prefixes: identity providers and API keys. */
export function authPathPrefixes({
  accounts,
  callers,
  config,
  siteUrl,
}: AuthRouteOptions): Readonly<Record<string, Handler>> {
  const services = { accounts, callers, crossSite: makeCrossSite(config) };
  return {
    ...federationHandlers({ ...services, render: makePageRenderer(config), siteUrl }),
    [API_KEYS_PATH]: apiKeyRoutes(services),
  };
}

function makePageRenderer({ signInRedirects }: Pick<Config, "signInRedirects">): RenderPage {
  return makeRenderPage({ formTargets: signInRedirects.map(formActionSource) });
}

/** A custom scheme of a mobile app has no origin, so the scheme itself is allowed. */
function formActionSource(address: string): string {
  const { origin, protocol } = new URL(address);
  return origin === "null" ? protocol : origin;
}

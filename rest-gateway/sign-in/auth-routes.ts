import type { Accounts } from "#accounts";
import type { Federation } from "#accounts/federation";
import type { Authenticator } from "#accounts/identity";
import type { Catalog } from "#catalog";
import type { Config } from "#config";
import {
  type GatewayHandler,
  type GatewayRoutes,
  type LimitExpensiveRequest,
  makeCsrfProtection,
  withoutCaching,
} from "#http";
import { makeRenderPage, type RenderPage } from "#rest-gateway/pages";
import { authPages } from "./account/account-pages.ts";
import { emailRoutes, factorRoutes } from "./account/account-routes.ts";
import { API_KEYS_PATH, apiKeyRoutes } from "./key-routes.ts";
import { sessionRoutes, tokenRoutes } from "./login-routes.ts";
import { oauthPages } from "./oauth/oauth-routes.ts";
import type { OAuthConfig } from "./oauth/oauth-services.ts";
import type { OAuthStore } from "./oauth/oauth-store.ts";
import { formActionSource } from "./pages/form-page.ts";
import { ACCOUNT_PATH, readPageRedirect } from "./pages/sign-in-pages.ts";
import { federationHandlers, makeStartLink } from "./provider-routes.ts";

type AuthRouteOptions = {
  readonly accounts: Accounts;
  readonly federation: Federation;
  readonly authenticator: Authenticator;
  readonly catalog: () => Catalog;
  readonly config: Pick<
    Config,
    "applicationUrl" | "corsOrigins" | "publicUrl" | "passwordPolicy" | "signInRedirects" | "studio" | "studioSql"
  > &
    OAuthConfig;
  /** The store of applications, and of the users' grants to them. */
  readonly oauthStore: OAuthStore;
  /** The path of Studio; null without Studio. */
  readonly studioPath: string | null;
  /** Returns the public URL of the service. */
  readonly siteUrl: () => string;
};

/** Routes for sign-in and accounts. They parse requests and format responses; `accounts` has the rules. */
export function authRoutes({
  accounts,
  federation,
  authenticator,
  config,
  siteUrl,
  studioPath,
  catalog,
  oauthStore,
  limitExpensive,
}: AuthRouteOptions & { readonly limitExpensive: LimitExpensiveRequest }): GatewayRoutes {
  const services = { accounts, authenticator, csrf: makeCsrfProtection(config), limitExpensive };
  const pages = withoutCaching({
    ...tokenRoutes(services),
    ...sessionRoutes(services),
    ...factorRoutes(services),
    ...emailRoutes(services),
    ...authPages({
      ...services,
      passwordPolicy: config.passwordPolicy,
      providers: federation.list,
      startLink: makeStartLink(federation),
      oauthStore: config.oauthServer ? oauthStore : null,
      readTarget: (text) => readPageRedirect(text, siteUrl(), config.signInRedirects),
      landing: (isAdministrator) => (isAdministrator ? studioPath : null) ?? config.applicationUrl ?? ACCOUNT_PATH,
      render: makePageRenderer(config),
    }),
  });
  return { ...pages, ...oauthPages({ ...services, catalog, config, oauthStore }) };
}

/** Handlers for path prefixes: identity providers and API keys. */
export function authPathPrefixes({
  accounts,
  federation,
  authenticator,
  catalog,
  config,
  siteUrl,
}: AuthRouteOptions): Readonly<Record<string, GatewayHandler>> {
  const services = { accounts, authenticator, csrf: makeCsrfProtection(config) };
  return {
    ...federationHandlers({ ...services, federation, render: makePageRenderer(config), siteUrl }),
    [API_KEYS_PATH]: apiKeyRoutes({ ...services, catalog, config }),
  };
}

function makePageRenderer({
  signInRedirects,
  applicationUrl,
}: Pick<Config, "signInRedirects"> & Partial<Pick<Config, "applicationUrl">>): RenderPage {
  const targets = applicationUrl ? [applicationUrl, ...signInRedirects] : signInRedirects;
  return makeRenderPage({ formTargets: targets.map(formActionSource) });
}

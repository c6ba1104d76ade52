import type { Accounts } from "../../engine/auth/accounts.ts";
import type { Callers } from "../../engine/caller/caller.ts";
import { makeCrossSite } from "../../engine/caller/cross-site.ts";
import type { Config } from "../../engine/config/config.ts";
import type { Routes } from "../gateway.ts";
import type { Handler } from "../http.ts";
import type { LimitExpensiveRequest } from "../limits/expensive-request-limit.ts";
import { makeRenderPage, type RenderPage } from "../pages/page.ts";
import { confidential } from "./confidential.ts";
import { factorRoutes } from "./factor-routes.ts";
import { federationFolder } from "./federation/folder.ts";
import { KEYS, keyFolder } from "./keys.ts";
import { mailRoutes } from "./mail-routes.ts";
import { makeReadTarget } from "./pages/read-target.ts";
import { authPages } from "./pages/routes.ts";
import { sessionRoutes } from "./session-routes.ts";
import { tokenRoutes } from "./token-routes.ts";

type Options = {
  readonly accounts: Accounts;
  readonly callers: Callers;
  readonly config: Pick<Config, "corsOrigins" | "publicUrl" | "passwordPolicy" | "signInRedirects">;
  /** Where clients reach us. */
  readonly siteUrl: () => string;
};

/** Signing in and out: each route reads the request, has `engine/auth` decide, and tells the outcome. */
export function authRoutes({
  accounts,
  callers,
  config,
  siteUrl,
  limitExpensive,
}: Options & { readonly limitExpensive: LimitExpensiveRequest }): Routes {
  const services = { accounts, callers, crossSite: makeCrossSite(config), limitExpensive };
  return confidential({
    ...tokenRoutes(services),
    ...sessionRoutes(services),
    ...factorRoutes(services),
    ...mailRoutes(services),
    ...authPages({
      ...services,
      passwordPolicy: config.passwordPolicy,
      providers: () => accounts.federation.list(),
      readTarget: makeReadTarget(siteUrl, config),
      render: renderOf(config),
    }),
  });
}

/** Addresses with a name or an id in them: other providers, and the keys of programs. */
export function authFolders({ accounts, callers, config, siteUrl }: Options): Readonly<Record<string, Handler>> {
  const services = { accounts, callers, crossSite: makeCrossSite(config) };
  return { ...federationFolder({ ...services, render: renderOf(config), siteUrl }), [KEYS]: keyFolder(services) };
}

function renderOf({ signInRedirects }: Pick<Config, "signInRedirects">): RenderPage {
  return makeRenderPage({ formTargets: signInRedirects.map(formTargetOf) });
}

/** A program of a phone is named by its scheme alone. */
function formTargetOf(address: string): string {
  const { origin, protocol } = new URL(address);
  return origin === "null" ? protocol : origin;
}

import type { Accounts } from "../../engine/auth/accounts.ts";
import type { Callers } from "../../engine/caller/caller.ts";
import type { Config } from "../../engine/config/config.ts";
import type { Routes } from "../gateway.ts";
import { confidential } from "./confidential.ts";
import { makeCrossSiteGuard } from "./cross-site.ts";
import { factorRoutes } from "./factor-routes.ts";
import { sessionRoutes } from "./session-routes.ts";
import { tokenRoutes } from "./token-routes.ts";

type Options = {
  readonly accounts: Accounts;
  readonly callers: Callers;
  readonly config: Pick<Config, "corsOrigins">;
};

/** Signing in and out: each route reads the request, has `engine/auth` decide, and tells the outcome. */
export function authRoutes({ accounts, callers, config }: Options): Routes {
  const services = { accounts, callers, guard: makeCrossSiteGuard(config) };
  return confidential({ ...tokenRoutes(services), ...sessionRoutes(services), ...factorRoutes(services) });
}

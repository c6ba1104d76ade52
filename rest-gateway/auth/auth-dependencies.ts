import type { Accounts } from "../../engine/auth/accounts.ts";
import type { Callers } from "../../engine/caller/caller.ts";
import type { CrossSite } from "../../engine/caller/cross-site.ts";
import type { LimitExpensiveRequest } from "../limits/expensive-request-limit.ts";

/** The dependencies of the sign-in routes. */
export type AuthDependencies = {
  readonly accounts: Accounts;
  readonly callers: Callers;
  readonly crossSite: CrossSite;
};

/** With the limit for routes that create accounts or send e-mails. */
export type LimitedAuthDependencies = AuthDependencies & { readonly limitExpensive: LimitExpensiveRequest };

import type { Accounts } from "../../engine/auth/accounts.ts";
import type { Callers } from "../../engine/caller/caller.ts";
import type { CrossSite } from "../../engine/caller/cross-site.ts";
import type { LimitExpensiveRequest } from "../limits/expensive-request-limit.ts";

/** What the routes of signing in are made of. */
export type AuthServices = {
  readonly accounts: Accounts;
  readonly callers: Callers;
  readonly crossSite: CrossSite;
};

/** Also of making an account, or sending a mail. */
export type CostlyServices = AuthServices & { readonly limitExpensive: LimitExpensiveRequest };

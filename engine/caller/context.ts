import type { Config } from "../config/config.ts";
import type { Context } from "../database/statement.ts";
import type { Caller } from "./caller.ts";

/** The door a request came through; policies may tell them apart. */
export type Interface = "table" | "resource" | "graphql" | "realtime";

export type Occasion = {
  readonly interface: Interface;
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  /** JSON objects of lower-case names, as PostgREST gives them to SQL. */
  readonly headers: string;
  readonly cookies: string;
};

/** The caller as Postgres sees it. Every request sets every one of these, so none can inherit what another has left. */
export function makeContexts({ usersAccess, appSettings }: Pick<Config, "usersAccess" | "appSettings">) {
  const ofDeployment = [["app.users_access", usersAccess] as const, ...appSettings];
  return (caller: Pick<Caller, "role" | "claimsText">, occasion: Occasion): Context => ({
    role: caller.role,
    settings: [
      ["request.jwt.claims", caller.claimsText],
      ["request.interface", occasion.interface],
      ["request.id", occasion.requestId],
      ["request.method", occasion.method],
      ["request.path", occasion.path],
      ["request.headers", occasion.headers],
      ["request.cookies", occasion.cookies],
      ...ofDeployment,
    ],
  });
}

import type { Caller } from "../../engine/caller/caller.ts";
import { callerKey } from "../../engine/caller/caller-key.ts";
import { makeContexts } from "../../engine/caller/context.ts";
import { makeFootings } from "../../engine/caller/footing.ts";
import { occasionOf } from "../../engine/caller/occasion.ts";
import { settingsOfRole } from "../../engine/caller/role-settings.ts";
import { makeSearchPaths } from "../../engine/caller/search-path.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Config } from "../../engine/config/config.ts";
import type { Context } from "../../engine/database/statement.ts";
import type { GatewayRequest } from "../http.ts";

type Settings = Pick<Config, "usersAccess" | "appSettings" | "extraSearchPath" | "readDatabaseUrls">;
type Asked = {
  readonly request: GatewayRequest;
  readonly caller: Caller;
  readonly catalog: Catalog;
  readonly schema: string;
};

/** All that Postgres is told before the statement. Policies know this door by `request.interface`. */
export function makeResourceContexts(settings: Settings) {
  const contexts = makeContexts(settings);
  const footing = makeFootings(settings);
  const searchPathFrom = makeSearchPaths(settings.extraSearchPath);
  return ({ request, caller, catalog, schema }: Asked): Context => {
    const { id, method, path, headers } = request;
    const { role, settings: said } = contexts(caller, occasionOf("resource", { id, method, path, headers }));
    return {
      role,
      settings: [searchPathFrom(schema), ...settingsOfRole(catalog.roles.get(role)), ...said],
      callerKey: () => callerKey(caller.claims, () => request.connection().address),
      ...footing(caller, request),
    };
  };
}

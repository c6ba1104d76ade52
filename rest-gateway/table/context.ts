import type { Caller } from "../../engine/caller/caller.ts";
import { callerKey } from "../../engine/caller/caller-key.ts";
import type { makeContexts } from "../../engine/caller/context.ts";
import { makeFootings } from "../../engine/caller/footing.ts";
import { settingsOfRole } from "../../engine/caller/role-settings.ts";
import { makeSearchPaths } from "../../engine/caller/search-path.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Config } from "../../engine/config/config.ts";
import type { Isolation } from "../../engine/database/exchange.ts";
import type { Context } from "../../engine/database/statement.ts";
import type { GatewayRequest } from "../http.ts";
import type { Plan } from "../statement/plan/plan.ts";
import type { TableRequest } from "./parse/request.ts";
import { tableOccasion } from "./request-settings.ts";

type Setting = Context["settings"][number];
type Settings = Pick<Config, "extraSearchPath" | "hoistedSettings" | "readDatabaseUrls">;
type Asked = {
  readonly request: GatewayRequest;
  /** Below the interface's own. */
  readonly path: string;
  readonly caller: Caller;
  readonly catalog: Catalog;
  readonly asked: TableRequest;
  readonly plan: Plan;
};

/** All that Postgres is told before the statement: what the role is given, then what the request says, which wins. */
export function makeTableContexts(
  contexts: ReturnType<typeof makeContexts>,
  { extraSearchPath, hoistedSettings, readDatabaseUrls }: Settings,
) {
  const footing = makeFootings({ readDatabaseUrls });
  const searchPathFrom = makeSearchPaths(extraSearchPath);

  return ({ request, path, caller, catalog, asked, plan }: Asked): Context => {
    const { role, settings } = contexts(caller, tableOccasion(request, path));
    const first: Setting[] = [searchPathFrom(asked.profile.schema), ...settingsOfRole(catalog.roles.get(role))];
    if (plan.kind === "call") {
      for (const [name, value] of plan.routine.settings) if (hoistedSettings.includes(name)) first.push([name, value]);
    }
    const { timezone } = asked.preferences;
    if (timezone !== null) first.push(["timezone", timezone]);
    return {
      role,
      settings: [...first, ...settings],
      callerKey: () => callerKey(caller.claims, () => request.connection().address),
      ...footing(caller, request),
    };
  };
}

const ISOLATION = "default_transaction_isolation";
const LEVELS: readonly string[] = ["read committed", "repeatable read", "serializable"] satisfies Isolation[];

/** What the function called, or else the caller's role, asks for; a transaction that has begun could not change it. */
export function isolationOf({ caller, catalog, plan }: Pick<Asked, "caller" | "catalog" | "plan">): Isolation | null {
  const ofCall = plan.kind === "call" ? plan.routine.settings.get(ISOLATION) : undefined;
  const level = (ofCall ?? catalog.roles.get(caller.role)?.settings.get(ISOLATION))?.toLowerCase();
  return level !== undefined && LEVELS.includes(level) ? (level as Isolation) : null;
}

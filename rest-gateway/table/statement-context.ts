import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Config } from "../../engine/config/config.ts";
import type { IsolationLevel } from "../../engine/database/pipelined-batch.ts";
import type { StatementContext } from "../../engine/database/statement.ts";
import { type Caller, callerKey } from "../../engine/identity/caller.ts";
import {
  type makeCallerSettings,
  makeSearchPathSetting,
  type RequestInfo,
  roleSettings,
} from "../../engine/identity/caller-settings.ts";
import type { Plan } from "../../engine/statement/plan/plan.ts";
import { makeReadYourWrites } from "../../http/read-your-writes.ts";
import { requestInfoOf } from "../../http/request-info.ts";
import type { GatewayRequest } from "../http/request.ts";
import type { TableRequest } from "./parse/request.ts";

type SqlSetting = StatementContext["settings"][number];
type ContextOptions = Pick<Config, "extraSearchPath" | "hoistedSettings" | "readDatabaseUrls">;
type ContextRequest = {
  readonly request: GatewayRequest;
  /** Below the interface's own. */
  readonly path: string;
  readonly caller: Caller;
  readonly catalog: Catalog;
  readonly parsed: TableRequest;
  readonly plan: Plan;
};

/** All that Postgres is told before the statement: what the role is given, then what the request says, which wins. */
export function makeTableContext(
  contexts: ReturnType<typeof makeCallerSettings>,
  { extraSearchPath, hoistedSettings, readDatabaseUrls }: ContextOptions,
) {
  const footing = makeReadYourWrites({ readDatabaseUrls });
  const searchPathFrom = makeSearchPathSetting(extraSearchPath);

  return ({ request, path, caller, catalog, parsed, plan }: ContextRequest): StatementContext => {
    const { role, settings } = contexts(caller, tableOperation(request, path));
    const first: SqlSetting[] = [searchPathFrom(parsed.profile.schema), ...roleSettings(catalog.roles.get(role))];
    if (plan.kind === "call") {
      for (const [name, value] of plan.routine.settings) if (hoistedSettings.includes(name)) first.push([name, value]);
    }
    const { timezone } = parsed.preferences;
    if (timezone !== null) first.push(["timezone", timezone]);
    return {
      role,
      settings: [...first, ...settings],
      callerKey: () => callerKey(caller.claims, () => request.connection().address),
      ...footing(caller, request),
    };
  };
}

const ISOLATION_SETTING = "default_transaction_isolation";
const ISOLATION_LEVELS: readonly string[] = [
  "read committed",
  "repeatable read",
  "serializable",
] satisfies IsolationLevel[];

/** What the function called, or else the caller's role, asks for; a transaction that has begun could not change it. */
export function requestedIsolation({
  caller,
  catalog,
  plan,
}: Pick<ContextRequest, "caller" | "catalog" | "plan">): IsolationLevel | null {
  const ofCall = plan.kind === "call" ? plan.routine.settings.get(ISOLATION_SETTING) : undefined;
  const level = (ofCall ?? catalog.roles.get(caller.role)?.settings.get(ISOLATION_SETTING))?.toLowerCase();
  return level !== undefined && ISOLATION_LEVELS.includes(level) ? (level as IsolationLevel) : null;
}

/** What SQL can know of the request; the path begins below the interface's own. */
function tableOperation({ id, method, headers }: GatewayRequest, path: string): RequestInfo {
  return requestInfoOf("table", { id, method, path, headers });
}

import {
  type Caller,
  callerKey,
  type InterfaceName,
  makeCallerSettings,
  makeSearchPathSetting,
  roleSettings,
} from "#accounts/identity";
import type { Catalog } from "#catalog";
import type { Config } from "#config";
import { type GatewayRequest, makeReadYourWrites } from "#http";
import { requestInfoOf } from "#http/request-info";
import type { Plan } from "#planner";
import type { IsolationLevel, StatementContext } from "#postgres/database";

type SqlSetting = StatementContext["settings"][number];
type ContextConfig = Pick<Config, "usersAccess" | "appSettings" | "extraSearchPath" | "readDatabaseUrls">;
type ContextOptions = {
  readonly interfaceName: InterfaceName;
  /** Cut off `request.path`, which is relative to the interface. */
  readonly pathPrefix: string;
  /** The settings of a function that apply to the whole transaction that calls it. */
  readonly hoistedSettings: readonly string[];
};

type ContextRequest = {
  readonly request: GatewayRequest;
  readonly caller: Caller;
  readonly catalog: Catalog;
  readonly schema: string;
  readonly timezone: string | null;
  /** Null: not planned yet, and no function whose settings matter. */
  readonly plan: Plan | null;
};

export type StatementContexts = (request: ContextRequest) => StatementContext;

/** The role and the settings that a request's transaction has: the role's own, then those of the request, which win. */
export function makeStatementContexts(
  config: ContextConfig,
  { interfaceName, pathPrefix, hoistedSettings }: ContextOptions,
): StatementContexts {
  const callerSettings = makeCallerSettings(config);
  const readYourWrites = makeReadYourWrites(config);
  const searchPathOf = makeSearchPathSetting(config.extraSearchPath);

  return ({ request, caller, catalog, schema, timezone, plan }) => {
    const { id, method, headers } = request;
    const path = request.path.slice(pathPrefix.length);
    const { role, settings } = callerSettings(caller, requestInfoOf(interfaceName, { id, method, path, headers }));
    const first: SqlSetting[] = [searchPathOf(schema), ...roleSettings(catalog.roles.get(role))];
    if (plan?.kind === "call") {
      for (const [name, value] of plan.routine.settings) if (hoistedSettings.includes(name)) first.push([name, value]);
    }
    if (timezone !== null) first.push(["timezone", timezone]);
    return {
      role,
      settings: [...first, ...settings],
      callerKey: () => callerKey(caller.claims, () => request.connection().address),
      ...readYourWrites(caller, request),
    };
  };
}

const ISOLATION_SETTING = "default_transaction_isolation";
const ISOLATION_LEVELS: readonly string[] = [
  "read committed",
  "repeatable read",
  "serializable",
] satisfies IsolationLevel[];

/** The level that the called function, or else the caller's role, sets; a transaction that has begun could not change it. */
export function requestedIsolation(caller: Caller, catalog: Catalog, plan: Plan | null): IsolationLevel | null {
  const ofRoutine = plan?.kind === "call" ? plan.routine.settings.get(ISOLATION_SETTING) : undefined;
  const level = (ofRoutine ?? catalog.roles.get(caller.role)?.settings.get(ISOLATION_SETTING))?.toLowerCase();
  return level !== undefined && ISOLATION_LEVELS.includes(level) ? (level as IsolationLevel) : null;
}

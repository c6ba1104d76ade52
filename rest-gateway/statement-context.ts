import type { Catalog } from "../catalog/catalog.ts";
import type { Config } from "../config/config.ts";
import type { IsolationLevel } from "../postgres/database/batch-steps.ts";
import type { StatementContext } from "../postgres/database/statement.ts";
import { type Caller, callerKey } from "../accounts/identity/caller.ts";
import {
  type InterfaceName,
  makeCallerSettings,
  makeSearchPathSetting,
  roleSettings,
} from "../accounts/identity/caller-settings.ts";
import { type Claims, serializeClaims } from "../accounts/identity/claims.ts";
import type { Plan } from "../planner/plan/plan.ts";
import { makeReadYourWrites } from "../http/read-your-writes.ts";
import { requestInfoOf } from "../http/request-info.ts";
import type { GatewayRequest } from "../http/request.ts";

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

type AssumedCaller = { readonly role: string; readonly claims: Claims };
type AssumedRequest = { readonly interfaceName: InterfaceName; readonly path: string };

/** The role and settings with which a request of a given caller would run: for `policies`, `why` and policy tests. */
export function makeAssumedContexts(
  catalog: Catalog,
  config: ContextConfig & Pick<Config, "schemas">,
): (caller: AssumedCaller, request: AssumedRequest) => StatementContext {
  const contextOf = makeCallerSettings(config);
  const searchPath = makeSearchPathSetting(config.extraSearchPath)(config.schemas[0]!);
  return ({ role, claims }, { interfaceName, path }) => {
    const info = requestInfoOf(interfaceName, { id: "command", method: "GET", path, headers: {} });
    const { settings } = contextOf({ role, claimsText: serializeClaims({ ...claims, role }) }, info);
    return { role, settings: [searchPath, ...roleSettings(catalog.roles.get(role)), ...settings] };
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

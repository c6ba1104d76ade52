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
import { makeReadYourWrites } from "#http";
import { requestInfoOf } from "#http/request-info";
import { bindRequest, type Plan, type PreparedRequest, type RunResult, runInTransaction, runRequest } from "#planner";
import type { IsolationLevel, RunStatement } from "#postgres/database";
import type { StatementContext } from "#postgres/statement";
import type { ParsedRequest, RequestState, RunIntent, StatementContexts } from "./dialect.ts";
import { planIntent } from "./plan.ts";

/** Runs the SQL, in the transaction that was begun or in one round trip. */
export async function run<Parsed extends ParsedRequest>(
  state: RequestState<Parsed>,
  prepared: PreparedRequest,
  transaction: RunStatement | null,
): Promise<RunResult> {
  state.request.stages.enter("run");
  try {
    return await (transaction ? runInTransaction(transaction, prepared) : runAlone(state, prepared));
  } catch (error) {
    state.failed = { error, intent: prepared.intent };
    throw error;
  }
}

function runAlone<Parsed extends ParsedRequest>(
  state: RequestState<Parsed>,
  prepared: PreparedRequest,
): Promise<RunResult> {
  const { request, parsed, pipeline } = state;
  const { plan } = prepared;
  const context = contextOf(state, plan);
  const options = {
    rollback: parsed.rollback,
    isolation: isolationOf(state, plan),
    before: pipeline.preRequest,
    signal: request.signal,
  };
  return runRequest(prepared, context, pipeline.database, options);
}

/** Makes a function that runs further statements of the request, such as one that reads the parent row in the path. */
export function makeRunFurther<Parsed extends ParsedRequest>(
  state: RequestState<Parsed>,
  transaction: RunStatement | null,
): RunIntent {
  return async (intent, planKey) => {
    const { planned } = planIntent(state, intent, planKey);
    state.request.stages.enter("query");
    return run(state, bindRequest(planned, intent), transaction);
  };
}

export function contextOf<Parsed extends ParsedRequest>(
  state: RequestState<Parsed>,
  plan: Plan | null,
): StatementContext {
  const { request, caller, parsed, pipeline } = state;
  const { catalog, schema, timezone } = parsed;
  state.context ??= pipeline.contextOf({ request, caller, catalog, schema, timezone, plan });
  return state.context;
}

export function isolationOf<Parsed extends ParsedRequest>(
  { caller, parsed, pipeline }: RequestState<Parsed>,
  plan: Plan | null,
): IsolationLevel | null {
  if (parsed.isolation) return parsed.isolation;
  return pipeline.choosesIsolation ? requestedIsolation(caller, parsed.catalog, plan) : null;
}

type SqlSetting = StatementContext["settings"][number];
type ContextConfig = Pick<Config, "usersAccess" | "appSettings" | "extraSearchPath" | "readDatabaseUrls">;
type ContextOptions = {
  readonly interfaceName: InterfaceName;
  /** The prefix that is cut off `request.path`, which is relative to the interface. */
  readonly pathPrefix: string;
  /** The settings of a function that apply to the whole transaction that calls it. */
  readonly hoistedSettings: readonly string[];
};

/** Makes the role and the settings of a request's transaction: the role's own, then those of the request, which take precedence. */
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

/** Returns the level that the called function, or else the caller's role, sets; a transaction that has begun cannot change it. */
export function requestedIsolation(caller: Caller, catalog: Catalog, plan: Plan | null): IsolationLevel | null {
  const ofRoutine = plan?.kind === "call" ? plan.routine.settings.get(ISOLATION_SETTING) : undefined;
  const level = (ofRoutine ?? catalog.roles.get(caller.role)?.settings.get(ISOLATION_SETTING))?.toLowerCase();
  return level !== undefined && ISOLATION_LEVELS.includes(level) ? (level as IsolationLevel) : null;
}

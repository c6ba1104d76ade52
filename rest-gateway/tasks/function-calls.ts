import { callerKey, makeCallerSettings, makeSearchPathSetting, NO_REQUEST, roleSettings } from "#accounts/identity";
import type { Catalog } from "#catalog";
import type { Config } from "#config";
import { HttpError, jsonResponse } from "#http";
import type { Database, RunStatement } from "#postgres/database";
import type { PrepareCall, QueuedCall } from "./task-runner.ts";

type PrepareCallOptions = {
  readonly database: Database;
  readonly catalog: () => Catalog;
  readonly config: Pick<Config, "usersAccess" | "appSettings" | "extraSearchPath" | "schemas" | "taskTimeout">;
};

/** The request of a call, for which `PGRST_DB_PRE_REQUEST`, which checks requests, does not run. */
const CALL = { ...NO_REQUEST, interface: "queue" } as const;

/** Prepares queued calls, which run with the role, its settings and the claims of the caller. */
export function makePrepareCall({ database, catalog, config }: PrepareCallOptions): PrepareCall {
  const callerSettings = makeCallerSettings(config);
  const searchPath = makeSearchPathSetting(config.extraSearchPath)(config.schemas[0]!);
  /** Returns the call's own limit. Without one, a caller's call has the same limit as without the queue. */
  const limitOf = ({ timeLimitMs, isSystem }: QueuedCall) => {
    const timeoutMs = timeLimitMs ?? (isSystem ? config.taskTimeout * 1000 : null);
    return timeoutMs === null ? {} : { timeoutMs };
  };

  return (call, caller) => {
    const { role, settings } = callerSettings(caller, CALL);
    const context = {
      role,
      settings: [searchPath, ...roleSettings(catalog().roles.get(role)), ...settings],
      callerKey: () => callerKey(caller.claims, () => null),
    };
    return {
      transact: (work) => database.transaction(context, work, limitOf(call)),
      execute: (run) => runCall(run, call),
    };
  };
}

async function runCall(run: RunStatement, { function: name, statement, arguments: values }: QueuedCall) {
  if (statement === null) throw new HttpError(404, "PGRST202", `The function ${name} does not exist any more.`);
  const { rows } = await run({ text: statement, values: [values] });
  return { ...jsonResponse(200, {}), body: rows[0]![0] ?? "null" };
}

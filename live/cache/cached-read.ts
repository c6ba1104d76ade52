import type { Caller } from "#accounts/identity";
import type { Catalog } from "#catalog";
import {
  describeShownRows,
  isBodyOfRows,
  type PreparedRequest,
  type RunResult,
  runInSnapshot,
  runRequest,
  wholeStatement,
} from "#planner";
import type { Database, StatementContext } from "#postgres/database";
import type { CacheRead, ResultCache } from "./result-cache.ts";

type RunOptions = Parameters<typeof runRequest>[3];

/** A request of a caller, and how it is run without a cache. */
export type PlannedRead = {
  readonly prepared: PreparedRequest;
  readonly context: StatementContext;
  readonly caller: Caller;
  readonly catalog: Catalog;
  readonly database: Database;
  readonly options: RunOptions;
};

/** The result from the cache, or else from Postgres. */
export async function readThroughCache(cache: ResultCache | null, read: PlannedRead): Promise<CacheRead<RunResult>> {
  const { prepared, context, caller, catalog, database, options } = read;
  const run = () => runRequest(prepared, context, database, options);
  if (!cache || !mayBeKept(prepared, options)) return { value: await run(), outcome: "off", result: null };
  const { plan, intent } = prepared;
  const shownRows = () => describeShownRows(plan, intent, catalog);
  return cache.read<RunResult>(
    { statement: wholeStatement(prepared), context, caller, shownRows },
    {
      run,
      async runInSnapshot() {
        const { result: value, snapshot } = await runInSnapshot(prepared, context, database, options);
        const text = snapshot !== null && isBodyOfRows(plan) ? String(value.body) : null;
        return { value, snapshot, bytes: sizeOf(value), text };
      },
    },
  );
}

/** Whether results of the statement may be kept, as far as the request decides it. */
function mayBeKept({ plan, nested, estimate, stream }: PreparedRequest, options: RunOptions): boolean {
  const { rollback, isolation, before } = options;
  const isAlone = nested === null && estimate === null && before === undefined;
  const isWhole = plan.format.kind !== "plan" && !stream?.history.wasTooLong;
  return plan.readOnly && isAlone && isWhole && !rollback && isolation === null;
}

function sizeOf({ body }: RunResult): number {
  if (typeof body === "string") return Buffer.byteLength(body);
  return Buffer.isBuffer(body) ? body.length : 0;
}

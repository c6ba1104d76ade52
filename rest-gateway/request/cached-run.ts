import type { ResultCache } from "#live";
import { type PreparedRequest, type RunResult, runInSnapshot, runRequest, wholeStatement } from "#planner";
import type { StatementContext } from "#postgres/database";
import type { ParsedRequest, RequestState } from "./dialect.ts";
import { equalityFilters } from "./equality-filters.ts";

type RunOptions = Parameters<typeof runRequest>[3];

/** Whether results of the statement may be kept, as far as the request decides it. */
export function mayBeCached<Parsed extends ParsedRequest>(
  { request: { method } }: RequestState<Parsed>,
  { plan, nested, estimate, stream }: PreparedRequest,
  { rollback, isolation, before }: RunOptions,
): boolean {
  const isRead = (method === "GET" || method === "HEAD") && plan.readOnly && plan.format.kind !== "plan";
  const isAlone = nested === null && estimate === null && !stream?.history.wasTooLong;
  return isRead && isAlone && !rollback && isolation === null && before === undefined;
}

/** The result from the cache, or else from Postgres. */
export async function runCached<Parsed extends ParsedRequest>(
  state: RequestState<Parsed>,
  cache: ResultCache,
  prepared: PreparedRequest,
  { context, options }: { readonly context: StatementContext; readonly options: RunOptions },
): Promise<RunResult> {
  const { caller, parsed, pipeline, request } = state;
  const query = {
    statement: wholeStatement(prepared),
    context,
    caller,
    filters: () => equalityFilters(prepared.intent, parsed.catalog),
  };
  const read = await cache.read<RunResult>(query, {
    run: () => runRequest(prepared, context, pipeline.database, options),
    runInSnapshot: async () => {
      const { result: value, snapshot } = await runInSnapshot(prepared, context, pipeline.database, options);
      return { value, snapshot, bytes: sizeOf(value) };
    },
  });
  request.stages.note("cache", read.outcome);
  state.cached = state.runs++ === 0 ? read.result : null;
  return read.value;
}

function sizeOf({ body }: RunResult): number {
  if (typeof body === "string") return Buffer.byteLength(body);
  return Buffer.isBuffer(body) ? body.length : 0;
}

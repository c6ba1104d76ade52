import type { Caller } from "#accounts/identity";
import type { Catalog } from "#catalog";
import type { CacheOutcome, ResultCache } from "#live";
import type { Database, StatementContext } from "#postgres/database";
import type { BoundOperation } from "../../compile/operation-plans.ts";
import type { CompiledRunOptions } from "./run-compiled.ts";

type CachedReads = {
  readonly cache: ResultCache;
  readonly database: Database;
  readonly caller: Caller;
  readonly bound: BoundOperation;
  readonly catalog: Catalog;
  noteOutcome(outcome: CacheOutcome): void;
};

/** What the rows of a larger result tell about later changes is not worth the time to read them. */
const MAX_SHOWN_BYTES = 2 ** 20;

/** Whether an operation is a query of one statement. */
export function isOneRead({ steps: [first, ...others] }: BoundOperation): boolean {
  const isRead = first?.before === undefined && first?.step.write === null && first.rows === undefined;
  return isRead && others.length === 0 && !first.step.failureText;
}

/** Runs the statement of a query, or takes its result from the cache. */
export function readQueriesThroughCache({
  cache,
  database,
  caller,
  bound,
  catalog,
  noteOutcome,
}: CachedReads): Pick<CompiledRunOptions["database"], "run"> {
  const run = async (context: StatementContext, ...[statement, options]: RunParameters) => {
    const query = { statement, context, caller, shownRows: () => bound.shownRows(catalog) };
    const { value, outcome } = await cache.read(query, {
      run: () => database.run(context, statement, { ...options, largeValues: "buffer" }),
      async runInSnapshot() {
        const { snapshot, result } = await database.runInSnapshot(context, statement);
        const bytes = result.rows.flat().reduce((sum, cell) => sum + (cell?.length ?? 0), 0);
        return { value: result, snapshot, bytes, text: bytes <= MAX_SHOWN_BYTES ? String(result.rows[0]![0]) : null };
      },
    });
    noteOutcome(outcome);
    return value;
  };
  return { run } as Pick<Database, "run">;
}

type RunParameters = [statement: Parameters<Database["run"]>[1], options?: Parameters<Database["run"]>[2]];

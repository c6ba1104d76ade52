import { filtersOf, type LiveResult } from "#live";
import type { QueryInTransaction, QueryTogether } from "#postgres/database";
import type { Statement } from "#postgres/statement";
import { NotCompiled } from "../compile/not-compiled.ts";
import type { BoundOperation } from "../compile/operation-plans.ts";
import { databaseWithin } from "./caller-database.ts";
import { failureOf } from "./live-failure.ts";
import type { OperationDependencies, PlannedOperation } from "./operation.ts";
import { compiledRunOptions, resultOf, runUnbound } from "./run.ts";
import { type CompiledRunOptions, type OperationResult, runCompiled, textOf } from "./run-compiled.ts";

/** Runs the query of a live query on the primary, which has each commit first, and notes its statements. */
export async function runLiveQuery(
  dependencies: OperationDependencies,
  planned: PlannedOperation,
  bound: BoundOperation | null,
): Promise<LiveResult> {
  try {
    const run = new LiveQueryRun(dependencies, planned);
    const { data, errors = [] } = await run.result(bound);
    if (errors.length > 0 || data == null) throw failureOf(errors);
    const { statements, shown } = run;
    return { text: textOf(data), statements, filters: filtersOf(shown), shown, missing: null };
  } finally {
    planned.memory.release();
  }
}

class LiveQueryRun {
  statements: LiveResult["statements"][number][] = [];
  shown: LiveResult["shown"] = [];
  readonly #dependencies: OperationDependencies;
  readonly #planned: PlannedOperation;

  constructor(dependencies: OperationDependencies, planned: PlannedOperation) {
    const { readYourWrites: _, ...context } = planned.context;
    this.#dependencies = dependencies;
    this.#planned = { ...planned, context };
  }

  /** Runs one statement in one round trip, or several in one snapshot. */
  async result(bound: BoundOperation | null): Promise<OperationResult> {
    if (!bound) return this.#runTogether();
    try {
      const options = { ...compiledRunOptions(this.#dependencies, this.#planned), database: { run: this.#runAlone } };
      const result = await runCompiled(bound, options, async (_step, reason) => {
        throw reason;
      });
      this.shown = bound.shownRows(this.#dependencies.catalog());
      return result;
    } catch (error) {
      if (!(error instanceof NotCompiled)) throw error;
      return this.#runTogether();
    } finally {
      this.#planned.memory.endExecution();
    }
  }

  readonly #runAlone: CompiledRunOptions["database"]["run"] = (context, statement, options) => {
    this.#note(statement);
    return this.#dependencies.database.run(context, statement, { ...options, readOnly: true });
  };

  #runTogether(): Promise<OperationResult> {
    const { database } = this.#dependencies;
    const { context, memory } = this.#planned;
    this.statements = [];
    const work = async (query: QueryInTransaction, queryTogether: QueryTogether) => {
      const inside = databaseWithin(
        (statement, options) => {
          if (!options?.isSavepoint) this.#note(statement);
          return query(statement, options);
        },
        (statements) => {
          for (const statement of statements) this.#note(statement);
          return queryTogether(statements);
        },
      );
      return resultOf(await runUnbound({ ...this.#dependencies, database: inside }, this.#planned));
    };
    const makeBudget = () => memory.statementBudget();
    return database.transaction(context, work, { isolation: "repeatable read", readOnly: true, makeBudget });
  }

  #note(statement: Statement): void {
    this.statements.push({ statement, context: this.#planned.context });
  }
}

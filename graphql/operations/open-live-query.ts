import { quotaKey } from "#accounts/identity";
import { filtersOf, type LiveResult } from "#live";
import { parseLsn, type QueryInTransaction, type QueryTogether } from "#postgres/database";
import type { Statement } from "#postgres/statement";
import { isJsonObject } from "#runtime/json";
import { NotCompiled } from "../compile/not-compiled.ts";
import type { BoundOperation } from "../compile/operation-plans.ts";
import { databaseWithin } from "./caller-database.ts";
import { errorsOf } from "./errors.ts";
import { failureOf } from "./live-failure.ts";
import { LiveResults } from "./live-results.ts";
import type {
  LiveOperation,
  OperationDependencies,
  OperationOutcome,
  OperationParameters,
  OperationRequestInfo,
  OperationStages,
  PlannedOperation,
} from "./operation.ts";
import { compiledRunOptions, runUnbound } from "./run.ts";
import { type CompiledRunOptions, type OperationResult, runCompiled, textOf } from "./run-compiled.ts";

/** Opens the live query of a subscription. It is planned again for each run, by the schema of that moment. */
export async function openLiveQuery(
  dependencies: OperationDependencies,
  stages: Pick<OperationStages, "plan" | "query">,
  { document, parameters }: LiveOperation,
  { signal: _, ...requestInfo }: OperationRequestInfo,
): Promise<OperationOutcome> {
  const { query, key } = document;
  const { operationName, extensions, parseExactVariables, variables } = parameters;
  const { caller } = requestInfo.authentication;
  const hasVariables = Object.keys(variables).length > 0;
  const source = {
    request: JSON.stringify(["graphql", query, operationName, hasVariables ? parseExactVariables() : {}]),
    caller,
    quotaKey: quotaKey(caller, requestInfo.address),
    isPrivate: false,
    run: async () => {
      const planned = await stages.plan({ ...parameters, query }, requestInfo);
      return runLiveQuery(dependencies, planned, await stages.query(planned));
    },
  };
  try {
    const since = parseLsn(String(requestInfo.headers["last-event-id"] ?? ""));
    const subscription = await dependencies.live.open(source, since);
    return { kind: "live", results: new LiveResults(subscription, { key, takesPatches: takesPatches(extensions) }) };
  } catch (error) {
    return { kind: "result", result: { errors: errorsOf(error) } };
  }
}

/** `{"live": {"patches": true}}` */
function takesPatches({ live }: OperationParameters["extensions"]): boolean {
  return isJsonObject(live) && live.patches === true;
}

/** Runs the query of a live query on the primary, which has each commit first, and notes its statements. */
async function runLiveQuery(
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
    const work = (query: QueryInTransaction, queryTogether: QueryTogether) => {
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
      return runUnbound({ ...this.#dependencies, database: inside }, this.#planned);
    };
    const makeBudget = () => memory.statementBudget();
    return database.transaction(context, work, { isolation: "repeatable read", readOnly: true, makeBudget });
  }

  #note(statement: Statement): void {
    this.statements.push({ statement, context: this.#planned.context });
  }
}

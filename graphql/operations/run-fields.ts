import type { ExecutionResult } from "grafast/graphql";
import { callerKey } from "#accounts/identity";
import type { QueryInTransaction, QueryTogether } from "#postgres/database";
import type { Statement } from "#postgres/statement";
import { runLongWork, runToCompletion, type Stepwise } from "#runtime/concurrency";
import { type CompiledField, type CompiledFields, compileFields } from "../compile/compile-fields.ts";
import type { RootValue } from "../compile/value-completion.ts";
import { type CallerDatabase, databaseWithin } from "./caller-database.ts";
import { type BoundField, FieldReader, readField } from "./field-reader.ts";
import type { PlannedOperation } from "./operation.ts";
import type { CompiledRunOptions, OperationResult } from "./run-compiled.ts";

/** A statement in place of the one that reads written rows. */
const NOTHING: Statement = { text: "select", values: [] };

/**
 * Runs each field of the operation by a statement of its own, one after the other, and completes their values. The error of a statement is the
 * error of the innermost fields that fail; the others are read without them.
 */
export async function runFields(
  planned: PlannedOperation,
  database: CallerDatabase,
  optionsFor: OptionsFor,
): Promise<OperationResult> {
  const { schema, document, operationName = null, variableValues } = planned.args;
  const { event } = planned;
  const { maxBytes } = planned.memory;
  const inputs = { schema, document, operationName, variables: variableValues ?? {}, event, maxBytes };
  const compiled = await takeSteps(compileFields(inputs), planned);
  if (!("fields" in compiled)) return { errors: compiled };
  const { stopsAtError } = optionsFor(database);
  const run = new FieldsRun(planned, compiled, database, optionsFor);
  const values = new Map<string, RootValue>();
  for (const field of compiled.fields) {
    const value = await run.valueOf(field);
    values.set(field.key, value);
    if (stopsAtError && value instanceof Error) break;
  }
  return withText(compiled.complete(values));
}

/** The options for statements in the database, or in an open transaction. */
type OptionsFor = (database: CallerDatabase) => CompiledRunOptions;

/** Runs the fields of an operation one after the other. */
class FieldsRun {
  readonly #planned: PlannedOperation;
  readonly #compiled: CompiledFields;
  readonly #database: CallerDatabase;
  readonly #optionsFor: OptionsFor;
  readonly #canceled: Error[] = [];

  constructor(planned: PlannedOperation, compiled: CompiledFields, database: CallerDatabase, optionsFor: OptionsFor) {
    this.#planned = planned;
    this.#compiled = compiled;
    this.#database = database;
    this.#optionsFor = optionsFor;
  }

  async valueOf(field: CompiledField): Promise<RootValue> {
    const { bound } = field;
    if (bound instanceof Error) return bound;
    const { readOnly, separateFields, countsSignUp } = bound.step;
    const accepted = { ...field, bound };
    if (readOnly) return this.#readerIn(this.#database).read(accepted);
    try {
      if (countsSignUp) await this.#planned.countSignUp?.();
      if (separateFields.length > 0) return await this.#writeFirst(accepted);
      return await readField(accepted, this.#optionsFor(this.#database));
    } catch (error) {
      return error as Error;
    }
  }

  #readerIn(database: CallerDatabase): FieldReader {
    return new FieldReader({
      database,
      options: this.#optionsFor(database),
      canceled: this.#canceled,
      makeBudget: () => this.#planned.memory.statementBudget(),
      compileWithout: (key, leftOut) => takeSteps(this.#compiled.compileWithout(key, leftOut), this.#planned),
    });
  }

  /** Writes in a transaction whose next statements read the result, so that what fails to be read is not written again. */
  #writeFirst(field: BoundField): Promise<RootValue> {
    const { context, memory } = this.#planned;
    const work = async (query: QueryInTransaction, queryTogether: QueryTogether) => {
      const inside = databaseWithin(query, queryTogether);
      const { before, rows } = field.bound;
      if (before) await inside.run(context, before);
      if (rows) await this.#optionsFor(inside).writeRows(rows, NOTHING, {});
      const value = await this.#readerIn(inside).read(field);
      // The transaction is rolled back if the field itself fails.
      if (value instanceof Error) throw value;
      return value;
    };
    return this.#database.transaction(context, work, { makeBudget: () => memory.statementBudget() });
  }
}

function withText({ data, ...others }: ExecutionResult): OperationResult {
  return data ? { ...others, data: JSON.stringify(data) } : { ...others, ...(data === null && { data }) };
}

/** Compiles at once, or in turn with other large work if the document is long. */
export function takeSteps<T>(
  steps: Stepwise<T>,
  { isLong, requestInfo: { authentication, address, signal } }: Pick<PlannedOperation, "isLong" | "requestInfo">,
): T | Promise<T> {
  const owner = callerKey(authentication.caller.claims, address);
  return isLong ? runLongWork(owner, steps, signal) : runToCompletion(steps);
}

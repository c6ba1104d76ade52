import type { ExecutionResult, FieldNode } from "grafast/graphql";
import pg from "pg";
import { callerKey } from "#accounts/identity";
import { isQueryCanceled, type QueryInTransaction, type QueryTogether } from "#postgres/database";
import type { Statement } from "#postgres/statement";
import { runLongWork, runToCompletion, type Stepwise } from "#runtime/concurrency";
import { type CompiledField, type CompiledFields, compileFields, type FieldStep } from "../compile/compile-fields.ts";
import type { SeparateFields } from "../compile/operation-compiler.ts";
import type { LeftOutFields, RootValue } from "../compile/value-completion.ts";
import { type CallerDatabase, databaseWithin } from "./caller-database.ts";
import type { PlannedOperation } from "./operation.ts";
import { type CompiledRunOptions, type OperationResult, readStatement } from "./run-compiled.ts";

/** A statement in place of the one that reads written rows. */
const NOTHING: Statement = { text: "select", values: [] };
/** After so many statements that took too long, the others of the operation have the error of the last one, and do not run. */
const MAX_CANCELED = 2;

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
  const run: FieldsRun = { planned, compiled, optionsFor, canceled: [] };
  const values = new Map<string, RootValue>();
  for (const field of compiled.fields) {
    const value = await runField(field, run, database);
    values.set(field.key, value);
    if (stopsAtError && value instanceof Error) break;
  }
  return withText(compiled.complete(values));
}

/** The options for statements in the database, or in an open transaction. */
type OptionsFor = (database: CallerDatabase) => CompiledRunOptions;

type FieldsRun = {
  readonly planned: PlannedOperation;
  readonly compiled: CompiledFields;
  readonly optionsFor: OptionsFor;
  /** The errors of statements that took too long, in the whole operation. */
  readonly canceled: Error[];
};

/** A field of an operation whose arguments are accepted. */
type BoundField = CompiledField & { readonly bound: FieldStep };

async function runField(field: CompiledField, run: FieldsRun, database: CallerDatabase): Promise<RootValue> {
  const { bound } = field;
  if (bound instanceof Error) return bound;
  const { readOnly, separateFields, countsSignUp } = bound.step;
  const accepted = { ...field, bound };
  if (readOnly) return new FieldReader(run, database).read(accepted);
  try {
    if (countsSignUp) await run.planned.countSignUp?.();
    if (separateFields.length > 0) return await writeFirst(accepted, run, database);
    return await readField(accepted, run.optionsFor(database));
  } catch (error) {
    return error as Error;
  }
}

/** Writes in a transaction whose next statements read the result, so that what fails to be read is not written again. */
function writeFirst(field: BoundField, run: FieldsRun, database: CallerDatabase): Promise<RootValue> {
  const { context, memory } = run.planned;
  const work = async (query: QueryInTransaction, queryTogether: QueryTogether) => {
    const inside = databaseWithin(query, queryTogether);
    const { before, rows } = field.bound;
    if (before) await inside.run(context, before);
    if (rows) await run.optionsFor(inside).writeRows(rows, NOTHING, {});
    const value = await new FieldReader(run, inside).read(field);
    // The transaction is rolled back if the field itself fails.
    if (value instanceof Error) throw value;
    return value;
  };
  return database.transaction(context, work, { makeBudget: () => memory.statementBudget() });
}

/** Reads a field of an operation; without those of its fields that fail, if the statement fails. What the field writes is written before. */
class FieldReader {
  readonly #run: FieldsRun;
  readonly #database: CallerDatabase;
  readonly #options: CompiledRunOptions;

  constructor(run: FieldsRun, database: CallerDatabase) {
    this.#run = run;
    this.#database = database;
    this.#options = run.optionsFor(database);
  }

  async read(field: BoundField): Promise<RootValue> {
    const { key, bound } = field;
    const { separateFields } = bound.step;
    const value = await this.#readOnce(field);
    if (separateFields.length === 0 || !isOfPart(value)) return value;
    const own = await this.#errorWithout(key, fieldsOf(separateFields), value);
    return own ?? this.#readWithout(key, await this.#findFailing(key, separateFields, [], value));
  }

  async #readOnce({ bound, ...field }: CompiledField, options = this.#options): Promise<RootValue> {
    const { canceled } = this.#run;
    if (bound instanceof Error) return bound;
    if (canceled.length >= MAX_CANCELED) return canceled.at(-1)!;
    const written = { ...field, bound: { ...bound, before: undefined, rows: undefined } };
    const read = () => readField(written, options);
    try {
      return await (this.#database.attempt?.(read) ?? read());
    } catch (error) {
      if (isQueryCanceled(error)) canceled.push(error as Error);
      return error as Error;
    }
  }

  async #readWithout(key: string, leftOut: LeftOutFields, options = this.#options): Promise<RootValue> {
    const { compiled, planned } = this.#run;
    return this.#readOnce(await takeSteps(compiled.compileWithout(key, leftOut), planned), options);
  }

  /**
   * Returns the innermost of these fields that fail, each with its own error. The statement without `others` fails by `error`, and it is
   * halved until the fields that fail are known.
   */
  async #findFailing(
    key: string,
    groups: readonly SeparateFields[],
    others: readonly FieldNode[],
    error: Error,
  ): Promise<LeftOutFields> {
    const [group] = groups;
    if (group === undefined) return new Map();
    if (groups.length === 1) return this.#findWithin(key, group, others, error);
    const failing = new Map<FieldNode, Error>();
    const middle = groups.length >> 1;
    const halves = [groups.slice(0, middle), groups.slice(middle)] as const;
    for (const [half, other] of [halves, halves.toReversed() as [SeparateFields[], SeparateFields[]]]) {
      const without = [...others, ...fieldsOf(other)];
      const own = await this.#errorWithout(key, without, error);
      if (!own) continue;
      for (const [node, found] of await this.#findFailing(key, half, without, own)) failing.set(node, found);
    }
    return failing;
  }

  /** The fields within a field that fail; the field itself if it fails without them. */
  async #findWithin(
    key: string,
    { fields, within }: SeparateFields,
    others: readonly FieldNode[],
    error: Error,
  ): Promise<LeftOutFields> {
    const inner = within();
    if (inner.length > 0) {
      const own = await this.#errorWithout(key, [...others, ...fieldsOf(inner)], error);
      if (!own) return this.#findFailing(key, inner, others, error);
    }
    return new Map(fields.map((field) => [field, error]));
  }

  async #errorWithout(key: string, leftOut: readonly FieldNode[], error: Error): Promise<Error | null> {
    const budget = this.#run.planned.memory.statementBudget();
    const options = { ...this.#options, budget, admit: () => {} };
    const value = await this.#readWithout(key, new Map(leftOut.map((field) => [field, error])), options);
    budget.giveAllBack();
    return value instanceof Error ? value : null;
  }
}

/** Runs the statements of a field. */
async function readField({ key, completion, bound }: BoundField, options: CompiledRunOptions): Promise<RootValue> {
  const data = JSON.parse(String(await readStatement(bound, options)));
  return { completion, value: data[key] };
}

/** True for an error that may be due to a part of the field. */
function isOfPart(value: RootValue): value is pg.DatabaseError {
  return value instanceof pg.DatabaseError && !isQueryCanceled(value);
}

function fieldsOf(groups: readonly SeparateFields[]): readonly FieldNode[] {
  return groups.flatMap(({ fields }) => fields);
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

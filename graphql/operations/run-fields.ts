import type { ExecutionResult, FieldNode } from "grafast/graphql";
import { callerKey } from "#accounts/identity";
import { isQueryCanceled } from "#postgres/database";
import { runLongWork, runToCompletion, type Stepwise } from "#runtime/concurrency";
import { type CompiledField, type CompiledFields, compileFields } from "../compile/compile-fields.ts";
import type { RootValue } from "../compile/value-completion.ts";
import type { PlannedOperation } from "./operation.ts";
import { type CompiledRunOptions, mayBeRepeated, type OperationResult, readStep } from "./run-compiled.ts";

/** Fields that come after so many whose statements took too long have the same error, and do not run. */
const MAX_CANCELED = 2;
/** The maximum number of groups of fields that are left out one by one. */
const MAX_LEFT_OUT = 8;

/**
 * Runs each field of the operation by a statement of its own, one after the other, and completes their values. An error of a statement is the
 * error of its field.
 */
export async function runFields(planned: PlannedOperation, options: CompiledRunOptions): Promise<OperationResult> {
  const { schema, document, operationName = null, variableValues } = planned.args;
  const { event } = planned;
  const inputs = { schema, document, operationName, variables: variableValues ?? {}, event };
  const compiled = await takeSteps(compileFields(inputs), planned);
  if (!("fields" in compiled)) return { errors: compiled };
  const result = compiled.complete(await new FieldReader(planned, compiled, options).readAll());
  return options.asText ? withText(result) : result;
}

/** Reads the fields one after the other. */
class FieldReader {
  readonly #planned: PlannedOperation;
  readonly #compiled: CompiledFields;
  readonly #options: CompiledRunOptions;

  constructor(planned: PlannedOperation, compiled: CompiledFields, options: CompiledRunOptions) {
    this.#planned = planned;
    this.#compiled = compiled;
    this.#options = options;
  }

  async readAll(): Promise<Map<string, RootValue>> {
    const values = new Map<string, RootValue>();
    const canceled: Error[] = [];
    for (const field of this.#compiled.fields) {
      const value = canceled.length < MAX_CANCELED ? await this.#read(field) : canceled.at(-1)!;
      values.set(field.key, value);
      if (isQueryCanceled(value)) canceled.push(value as Error);
      if (value instanceof Error && this.#options.stopsAtError) break;
    }
    return values;
  }

  async #read(field: CompiledField): Promise<RootValue> {
    const { key, bound } = field;
    if (bound instanceof Error) return bound;
    try {
      return await this.#readOnce(field);
    } catch (error) {
      const { separateFields } = bound.step;
      // A transaction is over after an error.
      const isOver = separateFields.length === 0 || this.#options.stopsAtError || !mayBeRepeated(error, bound.step);
      return isOver ? (error as Error) : this.#readWithout(key, separateFields, error as Error);
    }
  }

  async #readOnce({ key, completion, bound }: CompiledField): Promise<RootValue> {
    if (bound instanceof Error) return bound;
    const data = JSON.parse(String(await readStep(bound, this.#options)));
    return { completion, value: data[key] };
  }

  /** Runs a field that has failed and changed nothing: without the selected field that fails, or without all of those that may. */
  async #readWithout(key: string, groups: readonly (readonly FieldNode[])[], error: Error): Promise<RootValue> {
    const single = groups.length > 1 && groups.length <= MAX_LEFT_OUT ? groups : [];
    const all = groups.flat();
    for (const leftOut of [...single, all]) {
      const errors = new Map(leftOut.map((field) => [field, error]));
      const field = await takeSteps(this.#compiled.compileWithout(key, errors), this.#planned);
      const value = await this.#readOnce(field).catch((later: Error) => later);
      if (!(value instanceof Error)) return value;
      if (leftOut === all) return value;
    }
    return error;
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

import type { ExecutionResult } from "grafast/graphql";
import { callerKey } from "#accounts/identity";
import { isQueryCanceled } from "#postgres/database";
import { runLongWork, runToCompletion, type Stepwise } from "#runtime/concurrency";
import { type CompiledField, type CompiledFields, compileFields } from "../compile/compile-fields.ts";
import type { SeparateFields } from "../compile/operation-compiler.ts";
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
      const isOver = separateFields.length === 0 || !mayBeRepeated(error, bound.step);
      return isOver ? (error as Error) : this.#readWithout(key, separateFields, error as Error);
    }
  }

  async #readOnce({ key, completion, bound }: CompiledField): Promise<RootValue> {
    if (bound instanceof Error) return bound;
    const data = JSON.parse(String(await readStep(bound, this.#options)));
    return { completion, value: data[key] };
  }

  /**
   * Runs a field that has failed without those of its fields that fail: without one of them, or without all that may. It
   * looks for the innermost ones, since a field within rows that do not exist has no error.
   */
  async #readWithout(key: string, outer: readonly SeparateFields[], error: Error): Promise<RootValue> {
    let read: RootValue = error;
    let inner = outer;
    while (inner.length > 0) {
      const single = inner.length > 1 && inner.length <= MAX_LEFT_OUT ? inner.map((group) => [group]) : [];
      const found = await this.#firstThatReads(key, [...single, inner], error);
      // Without all of them it fails by itself.
      if (found instanceof Error) return inner === outer ? found : read;
      read = found.value;
      if (found.leftOut.length > 1) break;
      inner = found.leftOut[0]!.within();
    }
    return read;
  }

  async #firstThatReads(
    key: string,
    choices: readonly (readonly SeparateFields[])[],
    error: Error,
  ): Promise<{ readonly leftOut: readonly SeparateFields[]; readonly value: RootValue } | Error> {
    let last = error;
    for (const leftOut of choices) {
      const errors = new Map(leftOut.flatMap(({ fields }) => fields.map((field) => [field, error] as const)));
      const field = await takeSteps(this.#compiled.compileWithout(key, errors), this.#planned);
      const value = await this.#readOnce(field).catch((later: Error) => later);
      if (!(value instanceof Error)) return { leftOut, value };
      last = value;
    }
    return last;
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

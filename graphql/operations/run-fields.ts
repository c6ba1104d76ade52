import { callerKey } from "#accounts/identity";
import { runLongWork, runToCompletion, type Stepwise } from "#runtime/concurrency";
import { type CompiledField, compileFields } from "../compile/compile-fields.ts";
import type { RootValue } from "../compile/value-completion.ts";
import type { PlannedOperation } from "./operation.ts";
import { type CompiledRunOptions, type OperationResult, readStep } from "./run-compiled.ts";

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
  const values = new Map<string, RootValue>();
  for (const field of compiled.fields) values.set(field.key, await readField(field, options));
  return compiled.complete(values);
}

async function readField({ key, completion, bound }: CompiledField, options: CompiledRunOptions): Promise<RootValue> {
  if (bound instanceof Error) return bound;
  try {
    const data = JSON.parse(String(await readStep(bound, options)));
    return { completion, value: data[key] };
  } catch (error) {
    return error as Error;
  }
}

/** Compiles at once, or in turn with other large work if the document is long. */
export function takeSteps<T>(
  steps: Stepwise<T>,
  { isLong, requestInfo: { authentication, address, signal } }: Pick<PlannedOperation, "isLong" | "requestInfo">,
): T | Promise<T> {
  const owner = callerKey(authentication.caller.claims, address);
  return isLong ? runLongWork(owner, steps, signal) : runToCompletion(steps);
}

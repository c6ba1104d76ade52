import type { Stepwise } from "#runtime/concurrency";
import { NotCompiled } from "../compile/not-compiled.ts";
import type { BoundOperation } from "../compile/operation-plans.ts";
import { GraphqlRefusal } from "../documents/graphql-refusal.ts";
import type { CompilationOptions, PlannedOperation } from "./operation.ts";

/** Operation → SQL text and parameters, compiled once per document and combination of variables; null when its fields run by themselves. */
export function* query(
  compilation: CompilationOptions,
  { checked, selected, args, memory, requestInfo, runFieldsRefusal }: PlannedOperation,
): Stepwise<BoundOperation | null> {
  try {
    const plans = checked.plans(selected);
    const bound = yield* plans.bind(args.variableValues ?? {}, memory.maxBytes, runFieldsRefusal === null);
    compilation.outcomes.add("compiled");
    return bound;
  } catch (error) {
    noteNotCompiled(compilation, requestInfo.requestId, error);
  }
  if (runFieldsRefusal) throw new GraphqlRefusal([runFieldsRefusal]);
  return null;
}

/** Throws all errors but NotCompiled. */
export function noteNotCompiled({ outcomes, log }: CompilationOptions, request: string, error: unknown): void {
  if (!(error instanceof NotCompiled)) throw error;
  const { reason, message: detail } = error;
  outcomes.add(reason);
  log.debug({ request, reason, detail }, "the operation was not compiled");
}

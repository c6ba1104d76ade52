import type { Plan } from "#planner";
import type { Intent } from "#planner/intent";
import type { ParsedRequest, PlannedIntent, RequestState, RunIntent } from "./dialect.ts";

/** Plans an intent with the catalogue, or refuses names that do not exist. Some intents are known only after other rows have been read. */
export async function plan<Parsed extends ParsedRequest>(
  state: RequestState<Parsed>,
  runFurther: RunIntent,
): Promise<PlannedIntent> {
  const { intent: known, precheck, planKey } = state.parsed;
  const intent = typeof known === "function" ? await known(runFurther) : known;
  if (precheck) await precheck(runFurther);
  return planIntent(state, intent, planKey);
}

/** Plans the request's own statement, or a further one. */
export function planIntent<Parsed extends ParsedRequest>(
  { request, caller, parsed, pipeline }: RequestState<Parsed>,
  intent: Intent,
  planKey: object | undefined,
): PlannedIntent {
  request.stages.enter("plan");
  return { intent, planned: pipeline.dialect.plan(parsed, caller, intent, planKey) };
}

/** Plans ahead; null for an intent that is only known in the transaction, which is that of a write. */
export function planAhead<Parsed extends ParsedRequest>({
  caller,
  parsed,
  pipeline,
}: RequestState<Parsed>): Plan | null {
  if (typeof parsed.intent === "function") return null;
  return pipeline.dialect.plan(parsed, caller, parsed.intent, parsed.planKey).plan;
}

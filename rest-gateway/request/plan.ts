import type { Plan } from "#planner";
import type { Intent } from "#planner/intent";
import type { ParsedRequest, PlannedIntent, RequestState, RunIntent } from "./dialect.ts";

/** Intent + catalogue → plan, or a refusal of what does not exist. Some intents are known only when other rows have been read. */
export async function plan<Parsed extends ParsedRequest>(
  state: RequestState<Parsed>,
  runFurther: RunIntent,
): Promise<PlannedIntent> {
  const { intent: known, precheck, planKey } = state.parsed;
  const intent = typeof known === "function" ? await known(runFurther) : known;
  if (precheck) await precheck(runFurther);
  return planIntent(state, intent, planKey);
}

/** The plan of the request's own statement, or of a further one. */
export function planIntent<Parsed extends ParsedRequest>(
  { request, caller, parsed, pipeline }: RequestState<Parsed>,
  intent: Intent,
  planKey: object | undefined,
): PlannedIntent {
  request.stages.enter("plan");
  return { intent, planned: pipeline.dialect.plan(parsed, caller, intent, planKey) };
}

/** Null for an intent that is only known in the transaction: it is that of a write. */
export function planAhead<Parsed extends ParsedRequest>({
  caller,
  parsed,
  pipeline,
}: RequestState<Parsed>): Plan | null {
  if (typeof parsed.intent === "function") return null;
  return pipeline.dialect.plan(parsed, caller, parsed.intent, parsed.planKey).plan;
}

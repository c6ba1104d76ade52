import { bindRequest, bindRequestInSteps, type PreparedRequest } from "#planner";
import { runStepwise } from "#runtime/concurrency";
import type { Awaitable, ParsedRequest, PlannedIntent, RequestState } from "./dialect.ts";

/** The size of a body above which its values are bound in steps, between which other requests are served. */
const LARGE_BODY_BYTES = 64 * 1024;

/** Makes SQL text and parameters; only refuses a cursor of other values. The plan has the text, the intent the values. */
export function query<Parsed extends ParsedRequest>(
  { request, parsed: { body } }: RequestState<Parsed>,
  { planned, intent }: PlannedIntent,
): Awaitable<PreparedRequest> {
  request.stages.enter("query");
  const isLarge = typeof body !== "function" && body.length > LARGE_BODY_BYTES;
  return isLarge ? runStepwise(bindRequestInSteps(planned, intent), request.signal) : bindRequest(planned, intent);
}

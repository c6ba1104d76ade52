import type { Caller } from "#accounts/identity";
import { type GatewayRequest, type GatewayResponse, type HttpError, isBodyStream, type ResponseBody } from "#http";
import type { Plan, RunResult } from "#planner";
import type { FailedStatement, ParsedRequest, Pipeline, RequestState, RunIntent } from "./dialect.ts";

/** Converts a result to status, headers and body. */
export async function respond<Parsed extends ParsedRequest>(
  { request, parsed, pipeline }: RequestState<Parsed>,
  plan: Plan,
  result: RunResult,
  runFurther: RunIntent,
): Promise<GatewayResponse<ResponseBody>> {
  request.stages.enter("respond");
  try {
    const response = pipeline.dialect.respond(parsed, plan, result, runFurther);
    return response instanceof Promise ? await response : response;
  } catch (error) {
    // Nobody reads the rest of the rows.
    if (isBodyStream(result.body)) await result.body.return?.();
    throw error;
  }
}

export async function respondToOptions<Parsed extends ParsedRequest>(
  request: GatewayRequest,
  caller: Caller,
  { dialect, optionsStatus }: Pipeline<Parsed>,
): Promise<GatewayResponse> {
  request.stages.enter("respond");
  return { status: optionsStatus, headers: { Allow: await dialect.allowedMethods(request, caller) }, body: null };
}

/** The known state of a request that failed. */
type FailedRequest<Parsed extends ParsedRequest> = {
  readonly request: GatewayRequest;
  readonly caller: Caller;
  readonly pipeline: Pipeline<Parsed>;
  readonly parsed: Parsed | null;
  readonly failed: FailedStatement | null;
};

/** Explains an error. A 405 names the methods that the resource has (RFC 9110, section 15.5.6). */
export async function explainError<Parsed extends ParsedRequest>(
  thrown: unknown,
  { request, caller, pipeline: { dialect }, parsed, failed }: FailedRequest<Parsed>,
): Promise<HttpError> {
  const intent = failed && failed.error === thrown ? failed.intent : null;
  const error = dialect.explainError(thrown, caller, parsed, intent);
  if (error.status !== 405 || error.headers.Allow !== undefined) return error;
  return error.withHeaders({ Allow: await dialect.allowedMethods(request, caller) });
}

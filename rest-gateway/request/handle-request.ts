import type { Caller } from "#accounts/identity";
import { type GatewayRequest, type GatewayResponse, notFound, type ResponseBody } from "#http";
import { isSchemaOutdated, type RunStatement } from "#postgres/database";
import type { PreparedTask } from "../tasks/task-runner.ts";
import { authenticate } from "./authenticate.ts";
import { MAX_ATTEMPTS, type ParsedRequest, type Pipeline, type RequestState } from "./dialect.ts";
import { beginTransaction, execute } from "./execution.ts";
import { parse, withRereadableBody } from "./parse.ts";
import { plan } from "./plan.ts";
import { query } from "./query.ts";
import { recordRequest } from "./record-request.ts";
import { explainError, respond, respondToOptions } from "./respond.ts";
import { makeRunFurther, run } from "./run.ts";

/**
 * A request whose caller is known: a queued one, whose transaction the task runner has begun, or one that another
 * interface has made (without a transaction).
 */
type ResumedRequest<Parsed extends ParsedRequest> = {
  readonly caller: Caller;
  readonly transaction: RunStatement | null;
  /** The state, if the request has been parsed already. */
  readonly state?: RequestState<Parsed>;
};

/** Handles a request to `/rest/v1`, `/users` or `/api/v<N>`: authenticate → parse → plan → query → run → respond. */
export async function handleRequest<Parsed extends ParsedRequest>(
  received: GatewayRequest,
  pipeline: Pipeline<Parsed>,
  resumed: ResumedRequest<Parsed> | null = null,
): Promise<GatewayResponse<ResponseBody>> {
  const caller = resumed?.caller ?? (await authenticate(received, pipeline));
  const refreshCatalog = resumed ? null : pipeline.refreshCatalog;
  const request = refreshCatalog ? withRereadableBody(received) : received;
  for (let attempt = 1; ; attempt++) {
    let state: RequestState<Parsed> | null = null;
    try {
      const parsed = resumed?.state ?? (await parse(request, caller, pipeline));
      if (parsed === null) return await respondToOptions(request, caller, pipeline);
      if ("response" in parsed) return await parsed.response;
      state = parsed;
      return await execute(parsed, resumed?.transaction ?? null, async (transaction) => {
        const runFurther = makeRunFurther(parsed, transaction);
        const planned = await plan(parsed, runFurther);
        const prepared = await query(parsed, planned);
        const result = await run(parsed, prepared, transaction);
        recordRequest(parsed, planned.planned, planned.intent);
        return respond(parsed, prepared.plan, result, runFurther);
      });
    } catch (thrown) {
      // A statement that names a dropped object has changed nothing.
      const mayRetry = state && refreshCatalog && attempt < MAX_ATTEMPTS && isSchemaOutdated(thrown);
      if (mayRetry && (await refreshCatalog(state!.parsed.catalog))) continue;
      throw await explainError(thrown, state ?? { request, caller, pipeline, parsed: null, failed: null });
    }
  }
}

/** Prepares a queued request, which is parsed for the settings of the transaction that the task runner begins. */
export async function prepareTask<Parsed extends ParsedRequest>(
  request: GatewayRequest,
  caller: Caller,
  pipeline: Pipeline<Parsed>,
): Promise<PreparedTask> {
  const state = await parse(request, caller, pipeline);
  if (state === null || "response" in state || !state.parsed.isQueueable) throw notFound();
  return {
    transact: beginTransaction(state),
    // In a transaction the result is never streamed.
    execute: (transaction) => handleRequest(request, pipeline, { caller, transaction }) as Promise<GatewayResponse>,
  };
}

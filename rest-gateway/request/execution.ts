import { setTimeout as sleep } from "node:timers/promises";
import { isReadOnlyAccess } from "#accounts/identity";
import type { GatewayResponse, ResponseBody } from "#http";
import { isSerializationFailure, type RunStatement } from "#postgres/database";
import type { Statement } from "#postgres/statement";
import { type AbortLike, awaitedRetryDelay } from "#runtime/concurrency";
import { type KeyedRequest, readIdempotencyKey } from "../idempotency/idempotent-runner.ts";
import { prefersAsync } from "../tasks/task-queue.ts";
import type { PreparedTask } from "../tasks/task-runner.ts";
import type { ParsedRequest, RequestState, RunIntent } from "./dialect.ts";
import { bodyOf } from "./parse.ts";
import { planAhead } from "./plan.ts";
import { contextOf, isolationOf } from "./run.ts";

/** The number of attempts at a transaction that is repeated while concurrent ones prevent it. */
const MAX_CONFLICTS = 10;

/** Runs the stages that need the database: in the transaction that was begun, or (null) in one round trip. */
type LastStages = (transaction: RunStatement | null) => Promise<GatewayResponse<ResponseBody>>;

/**
 * Runs the last stages of a request in one round trip, in a transaction of their own or in the one that was begun for it,
 * and at most once under an Idempotency-Key; with `Prefer: respond-async` the request is queued instead.
 */
export async function execute<Parsed extends ParsedRequest>(
  state: RequestState<Parsed>,
  begun: RunStatement | null,
  lastStages: LastStages,
): Promise<GatewayResponse<ResponseBody>> {
  const { parsed, pipeline } = state;
  // In a transaction the result is never streamed.
  const runWhole = lastStages as (transaction: RunStatement) => Promise<GatewayResponse>;
  if (begun === null && isQueued(state)) return queueRequest(state);
  const key = idempotencyKeyOf(state);
  if (key !== null) {
    const keyed = await toKeyedRequest(state, key, runWhole);
    if (begun) return pipeline.idempotency.runInTransaction(keyed, begun);
    return pipeline.idempotency.run(keyed, beginTransaction(state));
  }
  if (begun || !parsed.needsTransaction) return lastStages(begun);
  // No connection is held while a slow client sends its body.
  await bodyOf(parsed);
  return beginTransaction(state)(runWhole);
}

/** Begins a transaction with the caller's settings, for one or more statements. */
export function beginTransaction<Parsed extends ParsedRequest>(state: RequestState<Parsed>): PreparedTask["transact"] {
  const { database, preRequest } = state.pipeline;
  const plan = planAhead(state);
  const context = contextOf(state, plan);
  const isolation = isolationOf(state, plan);
  const options = isolation === null ? {} : { isolation };
  const { isolation: required, rollback } = state.parsed;
  return (work) => {
    const runInside = afterPreRequest(preRequest, work);
    const transact = () =>
      database.transaction(
        context,
        async (run, runTogether) => {
          const result = await runInside(run);
          if (rollback) await runTogether([NOTHING], { end: "checked" });
          return result;
        },
        options,
      );
    return required ? repeatOnConflict(transact, state.request.signal) : transact();
  };
}

/** Ends a transaction whose statements have all been run. */
const NOTHING: Statement = { text: "select", values: [] };

/** Runs a transaction again that was rolled back because of a concurrent one. */
export async function repeatOnConflict<Result>(
  transact: () => Promise<Result>,
  signal: Pick<AbortLike, "aborted">,
  causeOf = (error: unknown) => error,
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await transact();
    } catch (error) {
      if (!isSerializationFailure(causeOf(error)) || attempt === MAX_CONFLICTS || signal.aborted) throw error;
    }
    await sleep(awaitedRetryDelay(attempt));
  }
}

/** Runs the work of a transaction after the operator's pre-request function. */
export function afterPreRequest<Result>(
  preRequest: Statement | undefined,
  work: (run: RunStatement) => Promise<Result>,
): (run: RunStatement) => Promise<Result> {
  return async (run) => {
    if (preRequest) await run(preRequest);
    return work(run);
  };
}

/** Returns true if the request is queued. For a read-only application nothing is stored: its call runs at once. */
function isQueued<Parsed extends ParsedRequest>({ request, caller, parsed, pipeline }: RequestState<Parsed>): boolean {
  const isPossible = pipeline.queueTask !== null && parsed.isQueueable && !parsed.rollback;
  return isPossible && prefersAsync(request) && !isReadOnlyAccess(caller);
}

/** Queues a request, if it can be parsed and planned. */
async function queueRequest<Parsed extends ParsedRequest>(state: RequestState<Parsed>): Promise<GatewayResponse> {
  const { request, caller, parsed, pipeline } = state;
  const body = await bodyOf(parsed);
  if (typeof parsed.intent === "function") await parsed.intent(rejectStatement);
  else planAhead(state);
  const rawQuery = pipeline.queryWithoutApiKey(request);
  return pipeline.queueTask!({ request: { ...request, rawQuery }, body, caller, version: parsed.version });
}

const rejectStatement: RunIntent = () => {
  throw new TypeError("The intent of a request that can be queued depends on no rows");
};

/** Returns the key; null without the header, and for reads, for which the header has no effect. */
function idempotencyKeyOf<Parsed extends ParsedRequest>(state: RequestState<Parsed>): string | null {
  const { request, parsed } = state;
  if (request.headers["idempotency-key"] === undefined || parsed.rollback) return null;
  return planAhead(state)?.readOnly ? null : readIdempotencyKey(request.headers);
}

async function toKeyedRequest<Parsed extends ParsedRequest>(
  { request, caller, parsed, pipeline }: RequestState<Parsed>,
  key: string,
  make: KeyedRequest["make"],
): Promise<KeyedRequest> {
  // Versions may respond differently to the same request.
  const version = parsed.version === null ? [] : [String(parsed.version)];
  const body = await bodyOf(parsed);
  return {
    key,
    scope: pipeline.name,
    caller,
    request,
    parts: [request.method, request.path, pipeline.queryWithoutApiKey(request), ...version, body],
    shaping: pipeline.shapingHeaders,
    make,
  };
}

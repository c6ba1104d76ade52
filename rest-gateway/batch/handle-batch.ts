import { type GatewayRequest, type GatewayResponse, makeBodyLimits, withMembers } from "#http";
import { isSchemaOutdated, type QueryTogether, ResponseBudget, type RunStatement } from "#postgres/database";
import { type KeyedRequest, readIdempotencyKey } from "../idempotency/idempotent-runner.ts";
import { authenticate } from "../request/authenticate.ts";
import { MAX_ATTEMPTS, type ParsedRequest } from "../request/dialect.ts";
import { repeatOnConflict } from "../request/execution.ts";
import { explainError } from "../request/respond.ts";
import { requestedIsolation } from "../request/run.ts";
import { prefersAsync } from "../tasks/task-queue.ts";
import { BatchFailure, invalidBatch, readBatchParts } from "./batch-parts.ts";
import {
  type BatchInterface,
  BatchRun,
  type Grouping,
  GroupTooLarge,
  PartFailure,
  type ReceivedBatch,
} from "./run-batch.ts";

/** Handles several requests in one transaction: authenticate, then parse, plan and query each part, and run groups of them. */
export async function handleBatch<Parsed extends ParsedRequest>(
  request: GatewayRequest,
  batch: BatchInterface<Parsed>,
): Promise<GatewayResponse> {
  const { pipeline, config } = batch;
  const caller = await authenticate(request, pipeline);
  request.stages.enter("parse");
  try {
    if (prefersAsync(request)) throw invalidBatch("A batch cannot be queued.", "Remove Prefer: respond-async.");
    const body = await request.readBody(makeBodyLimits(config)(caller));
    const parts = await readBatchParts(await batch.readList(body, request), config.maxBatchParts, request);
    request.admit(caller, parts.length);
    const received = { request, caller, body, parts, batch };
    return await (batch.isolationFor?.(parts)
      ? repeatOnConflict(() => runRepeatedly(received), request.signal, causeOf)
      : runRepeatedly(received));
  } catch (thrown) {
    const failure = thrown instanceof BatchFailure ? thrown : new BatchFailure(null, thrown);
    const known = failure instanceof PartFailure ? failure : { request, parsed: null, failed: null };
    const parsed = known.parsed as Parsed | null;
    const error = await explainError(failure.cause, { ...known, parsed, caller, pipeline });
    throw failure.index === null ? error : withMembers(error, { index: failure.index });
  }
}

function causeOf(thrown: unknown): unknown {
  return thrown instanceof BatchFailure ? thrown.cause : thrown;
}

/** Runs the whole batch again while the schema changes: a failed batch has changed nothing. */
async function runRepeatedly<Parsed extends ParsedRequest>(received: ReceivedBatch<Parsed>): Promise<GatewayResponse> {
  const { refreshCatalog } = received.batch.pipeline;
  let grouping: Grouping = "largest";
  for (let attempt = 1; ; attempt++) {
    try {
      return await runOnce(received, grouping);
    } catch (thrown) {
      if (thrown instanceof GroupTooLarge && grouping === "largest") {
        grouping = "decided";
        continue;
      }
      if (!(thrown instanceof PartFailure) || !thrown.parsed || !refreshCatalog || attempt === MAX_ATTEMPTS)
        throw thrown;
      if (!isSchemaOutdated(thrown.cause) || !(await refreshCatalog(thrown.parsed.catalog))) throw thrown;
    }
  }
}

async function runOnce<Parsed extends ParsedRequest>(
  received: ReceivedBatch<Parsed>,
  grouping: Grouping,
): Promise<GatewayResponse> {
  const { request, caller, parts, batch } = received;
  const { pipeline } = batch;
  const scope = batch.scopeOf(request);
  const context = pipeline.contextOf({ ...scope, request, caller, plan: null });
  const chosen = pipeline.choosesIsolation ? requestedIsolation(caller, scope.catalog, null) : null;
  const isolation = batch.isolationFor?.(parts) ?? chosen;
  const budget = new ResponseBudget(batch.config.maxAnswerBytes);
  const options = { isTimedAsOne: true, ...(isolation !== null && { isolation }) };
  const key = scope.rollback ? null : readIdempotencyKey(request.headers);
  if (key === null) {
    const end = scope.rollback ? "checked" : "commit";
    return pipeline.database.transaction(
      context,
      async (_query, queryTogether) =>
        batch.respond(await new BatchRun(received, queryTogether, budget, grouping).run(end)),
      options,
    );
  }
  // The response is stored in the transaction, so nothing is committed with the last group.
  let queryTogether: QueryTogether;
  const transact = (work: (run: RunStatement) => Promise<GatewayResponse>) =>
    pipeline.database.transaction(
      context,
      (query, together) => {
        queryTogether = together;
        return work(query);
      },
      options,
    );
  const make = async () => batch.respond(await new BatchRun(received, queryTogether, budget, grouping).run(null));
  return pipeline.idempotency.run({ ...toKeyedRequest(received, key), make }, transact);
}

/** The headers that choose the version or the schema of parts without their own. */
const INHERITED_HEADERS = ["accept-profile", "accept-version", "x-api-version"] as const;

function toKeyedRequest<Parsed extends ParsedRequest>(
  { request, caller, body, batch: { pipeline } }: ReceivedBatch<Parsed>,
  key: string,
): Omit<KeyedRequest, "make"> {
  const { method, path, headers } = request;
  const inherited = INHERITED_HEADERS.flatMap((name) =>
    headers[name] === undefined ? [] : [name, String(headers[name])],
  );
  const parts = [method, path, pipeline.queryWithoutApiKey(request), ...inherited, body];
  return { key, scope: pipeline.name, caller, request, parts, shaping: pipeline.shapingHeaders };
}

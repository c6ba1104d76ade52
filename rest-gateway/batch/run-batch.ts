import type { Caller } from "#accounts/identity";
import type { Config } from "#config";
import { bodyTooLarge, type GatewayRequest, type GatewayResponse } from "#http";
import { explainGroupError, type PreparedRequest, readGroupResult, statementsOf } from "#planner";
import {
  failedStatementOf,
  type IsolationLevel,
  type QueryTogether,
  type ResponseBudget,
  type RunStatement,
  type TransactionEnd,
} from "#postgres/database";
import { type StatementContext, withTextCells } from "#postgres/statement";
import type { FailedStatement, ParsedRequest, Pipeline, RequestState, RunIntent } from "../request/dialect.ts";
import { parse } from "../request/parse.ts";
import { plan } from "../request/plan.ts";
import { query } from "../request/query.ts";
import { contextOf, makeRunFurther } from "../request/run.ts";
import { BatchFailure, type BatchPart, invalidBatch, parsePartBody, resolveBody, resolvePath } from "./batch-parts.ts";

/** The parts of batches that differ between the interfaces; the rest is in the interface's pipeline. */
export type BatchInterface<Parsed extends ParsedRequest> = {
  readonly pipeline: Pipeline<Parsed>;
  readonly config: Config;
  /** Returns the JSON list of the requests, unchanged from the body. */
  readList(body: Buffer, request: GatewayRequest): Buffer | Promise<Buffer>;
  /** The settings and catalogue of the batch itself, which its parts may override. */
  readonly scopeOf: (request: GatewayRequest) => BatchScope;
  /** Returns the isolation level that the parts require; null if they require none. */
  isolationFor?(parts: readonly BatchPart[]): IsolationLevel | null;
  /** Returns the path of a part with the prefix of the interface. */
  toFullPath(path: string): string;
  /** Returns the headers of a part, including those inherited from the batch. */
  headersOf(batch: GatewayRequest["headers"], part: BatchPart): GatewayRequest["headers"];
  /** Returns true if no response to a result of the request can be an error, so that it may be committed before. */
  isDecided(parsed: Parsed, prepared: PreparedRequest): boolean;
  /** Returns true if the response to a successful request needs further statements. */
  readsFurther(parsed: Parsed): boolean;
  respond(responses: readonly GatewayResponse[]): GatewayResponse;
};

export type BatchScope = Pick<ParsedRequest, "catalog" | "schema" | "timezone" | "rollback">;

/** A batch whose caller is known. */
export type ReceivedBatch<Parsed extends ParsedRequest> = {
  readonly request: GatewayRequest;
  readonly caller: Caller;
  readonly body: Buffer;
  readonly parts: readonly BatchPart[];
  readonly batch: BatchInterface<Parsed>;
};

/** Thrown if a group has run too much for the response of one of its parts; see BatchRun. */
export class GroupTooLarge extends Error {}

/** Thrown with the known state of the part that failed. */
export class PartFailure extends BatchFailure {
  readonly request: GatewayRequest;
  readonly parsed: ParsedRequest | null;
  readonly failed: FailedStatement | null;

  constructor(index: number, cause: unknown, { request, parsed, failed }: PartProgress) {
    super(index, cause);
    this.request = request;
    this.parsed = parsed;
    this.failed = failed;
  }
}

/** The state of a part while it is parsed and planned. */
type PartProgress = Pick<PartFailure, "request" | "parsed" | "failed">;

/** A planned part whose statements wait for their group. */
type PendingPart<Parsed extends ParsedRequest> = {
  readonly index: number;
  readonly state: RequestState<Parsed>;
  readonly prepared: PreparedRequest;
  readonly runFurther: RunIntent;
  readonly isDecided: boolean;
  /** Headers that are added to those of the response. */
  readonly addedHeaders: Readonly<Record<string, string>>;
};

/** Ends a transaction whose parts have all been run. */
const NOTHING = { text: "select", values: [] };

/** In `largest`, a group ends only if one of its results is needed. In `decided`, it also ends after each part whose response can be an error. */
export type Grouping = "largest" | "decided";

/**
 * The parts of one attempt, in groups: parts that need no result of an earlier part are sent in one write. So later
 * parts may have run when a part turns out to have failed. If the error depends on that, everything is rolled back and
 * run again in smaller groups.
 */
export class BatchRun<Parsed extends ParsedRequest> {
  readonly #received: ReceivedBatch<Parsed>;
  readonly #queryTogether: QueryTogether;
  readonly #budget: ResponseBudget;
  readonly #grouping: Grouping;
  readonly #responses: GatewayResponse[] = [];
  readonly #parsedBodies = new Map<number, unknown>();
  #pending: PendingPart<Parsed>[] = [];

  constructor(
    received: ReceivedBatch<Parsed>,
    queryTogether: QueryTogether,
    budget: ResponseBudget,
    grouping: Grouping,
  ) {
    this.#received = received;
    this.#queryTogether = queryTogether;
    this.#budget = budget;
    this.#grouping = grouping;
  }

  /** Runs the parts. If `end` is null, the transaction stays open. */
  async run(end: TransactionEnd | null): Promise<readonly GatewayResponse[]> {
    for (const [index, part] of this.#received.parts.entries()) {
      if (part.lastReference >= this.#responses.length) await this.#flush(null);
      await this.#prepare(index, part);
    }
    if (end === "checked" && this.#pending.length === 0) await this.#queryTogether([NOTHING], { end });
    const isDecided = this.#pending.every((part) => part.isDecided);
    await this.#flush(end === "commit" && !isDecided ? null : end);
    return this.#responses;
  }

  async #prepare(index: number, part: BatchPart): Promise<void> {
    let progress: PartProgress = { request: this.#received.request, parsed: null, failed: null };
    const onProgress = (known: PartProgress) => {
      progress = known;
    };
    try {
      await this.#parseAndPlan(index, part, onProgress);
    } catch (error) {
      // The error may come from the statements of earlier parts.
      if (error instanceof BatchFailure || error instanceof GroupTooLarge) throw error;
      // Otherwise the pending parts run now, because the first failure is the one that is reported.
      await this.#flush(null);
      throw new PartFailure(index, error, progress);
    }
  }

  async #parseAndPlan(index: number, part: BatchPart, onProgress: (known: PartProgress) => void): Promise<void> {
    const { caller, batch } = this.#received;
    const addedHeaders: Record<string, string> = {};
    const request = this.#requestOf(index, part, addedHeaders);
    onProgress({ request, parsed: null, failed: null });
    const state = await parse(request, caller, batch.pipeline);
    if (state === null || "response" in state) {
      throw invalidBatch("A request of a batch reads or changes rows, or calls a function.");
    }
    onProgress(state);
    const runFurther = makeRunFurther(state, this.#runAlone(state));
    const planned = await plan(state, runFurther);
    const prepared = await query(state, planned);
    const isDecided = batch.isDecided(state.parsed, prepared);
    this.#pending.push({ index, state, prepared, runFurther, isDecided, addedHeaders });
    // The response reads further rows, which later parts may change.
    if (batch.readsFurther(state.parsed) || (this.#grouping === "decided" && !isDecided)) await this.#flush(null);
  }

  #requestOf(index: number, part: BatchPart, addedHeaders: Record<string, string>): GatewayRequest {
    const { request, batch } = this.#received;
    const bodyOf = (of: number) => this.#bodyOf(of);
    const target = batch.toFullPath(resolvePath(part, bodyOf));
    const body = resolveBody(part, index, bodyOf);
    if (!Buffer.isBuffer(part.body)) request.holdMemory(body.length);
    const mark = target.indexOf("?");
    return {
      ...request,
      method: part.method,
      path: mark < 0 ? target : target.slice(0, mark),
      rawQuery: mark < 0 ? "" : target.slice(mark + 1),
      headers: batch.headersOf(request.headers, part),
      admit: () => {},
      addResponseHeaders: (headers) => void Object.assign(addedHeaders, headers),
      readBody: async (limit) => {
        if (body.length > limit.bytes) throw bodyTooLarge(limit);
        return body;
      },
    };
  }

  #bodyOf(index: number): unknown {
    if (!this.#parsedBodies.has(index)) {
      this.#parsedBodies.set(index, parsePartBody(this.#responses[index]!));
    }
    return this.#parsedBodies.get(index);
  }

  /** Runs a statement that a part needs before its own, after all statements of earlier parts. */
  #runAlone(state: RequestState<Parsed>): RunStatement {
    return async (statement) => {
      await this.#flush(null);
      const context = partContext(state, null);
      // The settings of the parts before are gone, so the function that policies rely on is called for this statement too.
      const before = this.#received.batch.pipeline.preRequest;
      const [result] = await this.#queryTogether([{ ...statement, context, before }], { budget: this.#budget });
      return withTextCells(result!);
    };
  }

  async #flush(end: TransactionEnd | null): Promise<void> {
    const group = this.#pending;
    this.#pending = [];
    if (group.length === 0) return;
    const { request, batch } = this.#received;
    if (request.signal.aborted) throw request.signal.reason;
    const requests = group.map(({ state, prepared }) => {
      const context = partContext(state, prepared);
      const [first, ...others] = statementsOf(prepared);
      const { readOnly } = prepared.plan;
      return [{ ...first!, context, before: batch.pipeline.preRequest, readOnly }, ...others];
    });
    request.stages.enter("run");
    const options = { end, ...(end !== "commit" && { budget: this.#budget }) };
    const results = await this.#queryTogether(requests.flat(), options).catch((error: unknown) => {
      throw failureOf(error, group, requests);
    });
    request.stages.enter("respond");
    let at = 0;
    for (const [position, part] of group.entries()) {
      const { length } = requests[position]!;
      const isLast = position === group.length - 1;
      this.#responses.push(await this.#respond(part, results.slice(at, at + length), isLast));
      at += length;
    }
  }

  async #respond(
    { index, state, prepared, runFurther, addedHeaders }: PendingPart<Parsed>,
    results: Parameters<typeof readGroupResult>[1],
    isLast: boolean,
  ): Promise<GatewayResponse> {
    const { parsed, pipeline } = state;
    try {
      const result = readGroupResult(prepared, results);
      const runNext: RunIntent = isLast ? runFurther : () => Promise.reject(new GroupTooLarge());
      const response = await pipeline.dialect.respond(parsed, prepared.plan, result, runNext);
      // In a transaction no result is streamed.
      return { ...(response as GatewayResponse), headers: { ...addedHeaders, ...response.headers } };
    } catch (error) {
      if (error instanceof BatchFailure || error instanceof GroupTooLarge) throw error;
      throw new PartFailure(index, error, state);
    }
  }
}

/** Returns the failure of the part whose statement failed, unless an earlier part may have failed too. */
function failureOf<Parsed extends ParsedRequest>(
  error: unknown,
  group: readonly PendingPart<Parsed>[],
  requests: readonly (readonly unknown[])[],
): BatchFailure | GroupTooLarge {
  let failed = failedStatementOf(error);
  if (failed === null) return new BatchFailure(null, error);
  for (const [position, { index, state, prepared, isDecided }] of group.entries()) {
    const { length } = requests[position]!;
    if (failed < length) {
      const explained = explainGroupError(prepared, error, failed);
      return new PartFailure(index, explained, { ...state, failed: { error: explained, intent: prepared.intent } });
    }
    if (!isDecided) return new GroupTooLarge();
    failed -= length;
  }
  return new BatchFailure(null, error);
}

/** Statements that clear what an earlier part has set for its response, if the router keeps settings from being reset. */
const NO_RESPONSE_SETTINGS = [
  ["pgrst.inserted", ""],
  ["response.headers", ""],
  ["response.status", ""],
] as const;

function partContext<Parsed extends ParsedRequest>(
  state: RequestState<Parsed>,
  prepared: PreparedRequest | null,
): StatementContext {
  const context = contextOf(state, prepared?.plan ?? null);
  return { ...context, settings: [...context.settings, ...NO_RESPONSE_SETTINGS] };
}

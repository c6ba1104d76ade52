import type { IncomingHttpHeaders } from "node:http";
import { isDeepStrictEqual } from "node:util";
import { type Caller, type Claims, quotaKey } from "#accounts/identity";
import {
  acceptsEventStream,
  EVENT_STREAM,
  EVENT_STREAM_HEADERS,
  type EventSource,
  type GatewayRequest,
  type GatewayResponse,
  HttpError,
  isBodyStream,
  type ResponseBody,
  sendEvents,
  toEventText,
  toHttpError,
} from "#http";
import { filtersOf, type LiveQueries, type LiveResult, type LiveSubscription } from "#live";
import { describeShownRows, isBodyOfRows } from "#planner";
import { formatLsn, parseLsn, type RunStatement } from "#postgres/database";
import type { StatementContext } from "#postgres/statement";
import { ApiError } from "#runtime";
import { authenticate } from "./authenticate.ts";
import type { CallerAuthentication, ParsedRequest, Pipeline, RequestState } from "./dialect.ts";
import { afterPreRequest } from "./execution.ts";
import { handleRequest } from "./handle-request.ts";
import { parse } from "./parse.ts";
import { planAhead } from "./plan.ts";
import { explainError } from "./respond.ts";
import { contextOf } from "./run.ts";

/** Headers that do not change the rows of a response. */
const OTHER_HEADERS =
  /^(?:accept-(?:encoding|language)|apikey|authorization|cache-control|connection|content-length|cookie|dnt|keep-alive|last-event-id|origin|pragma|priority|referer|sec-.*|te|traceparent|tracestate|upgrade-insecure-requests|user-agent|via|x-api-key|x-client-info|x-csrf-token|x-forwarded-.*|x-real-ip|x-request-id|x-supabase-.*|forwarded)$/;
/** Headers for caches, which do not apply to a live query. */
const CONDITIONS = /^(?:if-.*|last-event-id)$/;

/** Returns true if the client reads by GET and accepts a stream of events: the response then stays up to date. */
export function isLiveRequest({ method, headers }: GatewayRequest): boolean {
  return method === "GET" && acceptsEventStream(headers);
}

/** Handles a read whose response is sent again, as changes, whenever a commit changes it. */
export async function handleLiveRequest<Parsed extends ParsedRequest>(
  received: GatewayRequest,
  pipeline: Pipeline<Parsed>,
  live: LiveQueries,
): Promise<GatewayResponse<ResponseBody>> {
  const caller = await authenticate(received, pipeline);
  const request = toPlainRequest(received);
  const ready = await findReadyResponse(request, caller, pipeline);
  if (ready) return ready;
  const since = parseLsn(String(received.headers["last-event-id"] ?? ""));
  const source = {
    request: identityOf(request, pipeline),
    caller,
    quotaKey: quotaKey(caller, () => received.connection().address),
    isPrivate: pipeline.preRequest !== undefined,
    run: () => runLive(request, caller, pipeline),
  };
  const subscription = await live.open(source, since);
  received.signal.addEventListener("abort", () => subscription.close());
  if (received.signal.aborted) subscription.close();
  const isValid = () => isStillValid(received, caller, pipeline.dialect);
  const body = sendEvents(toEventSource(subscription), { caller, isValid });
  return { status: 200, headers: EVENT_STREAM_HEADERS, body };
}

/** Returns the same request for a single response in JSON. */
function toPlainRequest(request: GatewayRequest): GatewayRequest {
  const kept = Object.entries(request.headers).filter(([name]) => !CONDITIONS.test(name));
  const accept = String(request.headers.accept)
    .split(",")
    .filter((range) => !range.trim().startsWith(EVENT_STREAM))
    .join(",");
  const headers: IncomingHttpHeaders = { ...Object.fromEntries(kept), accept: accept.trim() || "application/json" };
  return { ...request, headers, admit: () => {}, addResponseHeaders: () => {} };
}

/** Returns a redirect, or an error before any statement in its own format. */
async function findReadyResponse<Parsed extends ParsedRequest>(
  request: GatewayRequest,
  caller: Caller,
  pipeline: Pipeline<Parsed>,
): Promise<GatewayResponse<ResponseBody> | null> {
  try {
    const state = await parse(request, caller, pipeline);
    return state !== null && "response" in state ? await state.response : null;
  } catch (thrown) {
    throw await explainError(thrown, { request, caller, pipeline, parsed: null, failed: null });
  }
}

function identityOf<Parsed extends ParsedRequest>(request: GatewayRequest, pipeline: Pipeline<Parsed>): string {
  const headers = Object.entries(request.headers).filter(([name]) => !OTHER_HEADERS.test(name));
  return JSON.stringify([pipeline.name, request.path, pipeline.queryWithoutApiKey(request), headers.sort()]);
}

/** Returns true if the credentials of a request whose response continues are still those of its caller, with the same claims. */
export async function isStillValid(
  received: GatewayRequest,
  caller: Caller,
  authentication: CallerAuthentication,
): Promise<boolean> {
  try {
    // A request would extend the session, although its user does nothing.
    if (caller.kind === "session") return (await authentication.validateClaims(caller.claims)) === null;
    const now = await authentication.authenticate({ ...received, admit: () => {}, addResponseHeaders: () => {} });
    return now.kind === caller.kind && isDeepStrictEqual(lastingClaims(now), lastingClaims(caller));
  } catch (error) {
    // While the database is unavailable, the query stays open.
    return !(error instanceof ApiError && (error.kind === "unauthenticated" || error.kind === "forbidden"));
  }
}

/** Returns the claims without the time at which the credential was read. */
function lastingClaims({ claims: { iat: _, ...claims } }: Caller): Claims {
  return claims;
}

async function runLive<Parsed extends ParsedRequest>(
  request: GatewayRequest,
  caller: Caller,
  pipeline: Pipeline<Parsed>,
): Promise<LiveResult> {
  const state = await parse(request, caller, pipeline);
  if (state === null || "response" in state) throw new HttpError(404, "NOT_FOUND", "Not found.");
  const { parsed } = state;
  const runs = new RecordedRuns(state);
  const isSingle = typeof parsed.intent !== "function" && parsed.precheck === undefined;
  const respond = (transaction: RunStatement) => handleRequest(request, pipeline, { caller, transaction, state });
  let missing: unknown = null;
  const response = await (isSingle ? respond(runs.alone) : runs.together(respond)).catch((error: unknown) => {
    if (!isMissing(error)) throw error;
    missing = error;
    return null;
  });
  return { text: response ? toJsonText(response) : "null", statements: runs.statements, missing, ...readOf(state) };
}

/** Returns how the response shows the rows that are read. */
function readOf<Parsed extends ParsedRequest>(state: RequestState<Parsed>): Pick<LiveResult, "filters" | "shown"> {
  const { intent, catalog } = state.parsed;
  const plan = planAhead(state);
  if (plan === null || typeof intent === "function") return { filters: [], shown: [] };
  const rows = describeShownRows(plan, intent, catalog);
  const { name, preRequest } = state.pipeline;
  // A function that runs before the statement may read rows that are not shown.
  const isShown = name === "table" && preRequest === undefined && isBodyOfRows(plan);
  return { filters: filtersOf(rows), shown: isShown ? rows : [] };
}

function isMissing(error: unknown): boolean {
  return error instanceof ApiError && error.kind === "notFound";
}

/** The statements of one run. All use the primary, which has each commit first. */
class RecordedRuns<Parsed extends ParsedRequest> {
  readonly statements: LiveResult["statements"][number][] = [];
  readonly #state: RequestState<Parsed>;
  readonly #context: StatementContext;

  constructor(state: RequestState<Parsed>) {
    this.#state = state;
    const { readYourWrites: _, ...context } = contextOf(state, planAhead(state));
    this.#context = context;
  }

  /** Runs one statement in one round trip. A second one would have a later snapshot. */
  readonly alone: RunStatement = async (statement) => {
    const { database, preRequest: before } = this.#state.pipeline;
    this.statements.push({ statement, context: this.#context });
    if (this.statements.length > 1)
      throw new ApiError("invalid", "NOT_LIVE", "This query cannot be live: it needs several statements.");
    return database.run(this.#context, statement, { readOnly: true, before });
  };

  /** Runs all statements in one snapshot. */
  together<Result>(work: (transaction: RunStatement) => Promise<Result>): Promise<Result> {
    const { database, preRequest } = this.#state.pipeline;
    const runInside = afterPreRequest(preRequest, (run) =>
      work((statement) => {
        this.statements.push({ statement, context: this.#context });
        return run(statement);
      }),
    );
    return database.transaction(this.#context, runInside, { isolation: "repeatable read", readOnly: true });
  }
}

function toJsonText({ status, headers, body }: GatewayResponse<ResponseBody>): string {
  const type = String(headers["Content-Type"] ?? "");
  if (status >= 300 || body === null || isBodyStream(body) || !/^application\/(?:[\w.+-]+\+)?json\b/.test(type))
    throw new HttpError(
      406,
      "NOT_ACCEPTABLE",
      "Live responses are JSON: accept text/event-stream with a JSON type, or alone.",
    );
  return String(body);
}

const EXPIRED = {
  code: "AUTH_EXPIRED",
  message: "The token has expired, the session has ended, or the account has changed.",
};

/** Returns the events of a live query as `text/event-stream`. */
function toEventSource(subscription: LiveSubscription): EventSource {
  return {
    async next(milliseconds) {
      try {
        const event = await subscription.next(milliseconds);
        if (event === null || event === "idle") return event;
        return toEventText({ id: formatLsn(event.position), event: event.kind, data: event.text });
      } catch (error) {
        subscription.close();
        const { code, message, hint } = toHttpError(error);
        return toErrorEvent({ code, message, ...(hint && { hint }) });
      }
    },
    expired: toErrorEvent(EXPIRED),
    close: () => subscription.close(),
  };
}

/** Returns the event of an error. It is not named `error`, which is EventSource's name for a lost connection. */
function toErrorEvent(error: object): string {
  return toEventText({ event: "end", data: JSON.stringify(error) });
}

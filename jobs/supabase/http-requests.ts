import type { Agent, Dispatcher } from "undici";
import type { Listener } from "#postgres/client";
import type { AsOwner } from "#postgres/database";
import type { RepeatedWork, Supervisor } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import { type AllowedNetwork, findUrlProblem, makeSafeAgent } from "#runtime/safe-fetch";
import { describeSendError } from "../webhooks/send-delivery.ts";

export type HttpRequestOptions = {
  readonly asOwner: AsOwner;
  readonly listener: Listener;
  readonly supervisor: Supervisor;
  readonly network: AllowedNetwork;
  /** Returns the URL below which this service runs functions, which may have any address; null if it runs none. */
  readonly functionsUrl: () => string | null;
  readonly log: Pick<Logger, "warn">;
};

type QueuedRequest = {
  readonly id: string;
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, unknown>> | null;
  readonly body: Buffer | null;
  /** The bytes that the body takes; 0 if it is too large, and was not read. */
  readonly bytes: number;
  readonly isTooLarge: boolean;
  readonly timeoutMs: number;
};

type RecordedResponse = {
  readonly status: number | null;
  readonly type: string | null;
  readonly headers: Readonly<Record<string, string>> | null;
  readonly content: string | null;
  readonly isTimedOut: boolean | null;
  readonly error: string | null;
};

const CHANNEL = "net_requests";
const MAX_RUNNING = 100;
/** The size of the bodies in memory at once, and of a single one. */
const MAX_BODY_BYTES = 32 * 1_048_576;
/** The interval of polling, which finds requests whose notification was lost. */
const IDLE_MS = 30_000;
const MAX_RESPONSE_BYTES = 1_048_576;
const CLEANUP_MS = 60_000;
const FAILED = { status: null, type: null, headers: null, content: null } as const;

/** Requests are sent once: those that a killed process has taken and not completed are lost, as with pg_net. */
const TAKE_REQUESTS = `
  with locked as materialized (
    select id, coalesce(pg_catalog.octet_length(body), 0) as size from net.http_request_queue order by id limit $1 for update skip locked
  ), sized as (
    select id, size > $3 as "isTooLarge", case when size > $3 then 0 else size end as bytes from locked
  ), summed as (
    select *, pg_catalog.sum(bytes) over (order by id) as total from sized
  )
  delete from net.http_request_queue as queued using summed
  where queued.id = summed.id and summed.total <= $2
  returning queued.id, method, url, headers, case when not "isTooLarge" then body end as body, bytes, "isTooLarge",
    timeout_milliseconds as "timeoutMs"`;
const IS_WAITING = 'select exists (select from net.http_request_queue) as "isWaiting"';
const RECORD_RESPONSE = `
  insert into net._http_response (id, status_code, content_type, headers, content, timed_out, error_msg)
  values ($1, $2, $3, $4, $5, $6, $7)`;
/** pg_net keeps responses for the same time. */
const DELETE_RESPONSES =
  "delete from net._http_response where created < pg_catalog.now() - pg_catalog.interval '6 hours'";

/** Sends the requests of `net.http_get`, `net.http_post` and `net.http_delete` after their transactions, and records the responses. */
export class HttpRequests {
  readonly #options: HttpRequestOptions;
  readonly #work: RepeatedWork;
  readonly #cleanup: RepeatedWork;
  readonly #running = new Set<Promise<void>>();
  readonly #cancellation = new AbortController();
  readonly #agents = new Map<AllowedNetwork, Promise<Agent>>();
  #removeListeners: readonly (() => void)[] = [];
  #isClosed = false;
  #runningBytes = 0;
  /** True if requests wait until others have ended. */
  #isWaiting = false;

  constructor(options: HttpRequestOptions) {
    const { supervisor, listener, log } = options;
    this.#options = options;
    this.#work = supervisor.repeat("requests of SQL", () => this.#process(), { pauseMs: IDLE_MS });
    this.#cleanup = supervisor.repeat("responses to SQL", () => this.#clean(), { pauseMs: CLEANUP_MS });
    const soon = () => this.#work.soon();
    this.#removeListeners = [listener.onGap(soon)];
    listener.listen(CHANNEL, soon).then(
      (stop) => {
        this.#removeListeners = [...this.#removeListeners, stop];
      },
      (error) => {
        if (!this.#isClosed) log.warn({ err: error }, "requests of SQL are sent late");
      },
    );
  }

  /** Lets requests finish for this long, and then cancels them. */
  async close(milliseconds: number): Promise<void> {
    this.#isClosed = true;
    for (const remove of this.#removeListeners) remove();
    await Promise.all([this.#work.close(), this.#cleanup.close()]);
    const timer = setTimeout(() => this.#cancellation.abort(new Error("The service was stopped")), milliseconds);
    await Promise.allSettled([...this.#running]);
    clearTimeout(timer);
    for (const agent of this.#agents.values()) await (await agent).destroy();
  }

  async #process(): Promise<number> {
    // Requests may end while others are taken.
    this.#isWaiting = true;
    const free = MAX_RUNNING - this.#running.size;
    if (free === 0) return IDLE_MS;
    const limits = [free, MAX_BODY_BYTES - this.#runningBytes, MAX_BODY_BYTES];
    const { requests, isWaiting } = await this.#options.asOwner(async (client) => {
      const taken = await client.query<QueuedRequest>(TAKE_REQUESTS, limits);
      const rest = await client.query<{ isWaiting: boolean }>(IS_WAITING);
      return { requests: taken.rows, isWaiting: rest.rows[0]!.isWaiting };
    });
    this.#isWaiting = isWaiting;
    for (const request of requests) this.#begin(request);
    return IDLE_MS;
  }

  async #clean(): Promise<undefined> {
    await this.#options.asOwner((client) => client.query(DELETE_RESPONSES));
  }

  #begin(request: QueuedRequest): void {
    this.#runningBytes += request.bytes;
    const sending = this.#send(request).catch((err: unknown) => {
      this.#options.log.warn({ err, request: request.id }, "the response to a request of SQL could not be recorded");
    });
    this.#running.add(sending);
    void sending.finally(() => {
      this.#running.delete(sending);
      this.#runningBytes -= request.bytes;
      if (this.#isWaiting && !this.#isClosed) this.#work.soon();
    });
  }

  async #send(request: QueuedRequest): Promise<void> {
    const { status, type, headers, content, isTimedOut, error } = await this.#respond(request);
    const values = [request.id, status, type, headers, content, isTimedOut, error];
    await this.#options.asOwner((client) => client.query(RECORD_RESPONSE, values));
  }

  async #respond(request: QueuedRequest): Promise<RecordedResponse> {
    const { method, url: address, headers, body, isTooLarge, timeoutMs } = request;
    if (isTooLarge) return { ...FAILED, isTimedOut: false, error: `The body has more than ${MAX_BODY_BYTES} bytes` };
    const url = URL.parse(address);
    const network = url && this.#isOwnFunction(url) ? "private" : this.#options.network;
    const problem = url ? findUrlProblem(withoutCredentials(url), network) : new Error("URL is malformed");
    if (!url || problem) return { ...FAILED, isTimedOut: false, error: describeSendError(problem) };
    const timeout = AbortSignal.timeout(timeoutMs);
    try {
      const agent = await this.#openAgent(network);
      const response = await agent.request({
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method: method.toUpperCase() as Dispatcher.HttpMethod,
        headers: toHeaders(headers, url),
        body,
        signal: AbortSignal.any([timeout, this.#cancellation.signal]),
        headersTimeout: 0,
        bodyTimeout: 0,
      });
      return await readResponse(response);
    } catch (error) {
      const message = timeout.aborted ? `Timeout of ${timeoutMs} ms reached` : describeSendError(error);
      return { ...FAILED, isTimedOut: timeout.aborted, error: message };
    }
  }

  /** The operator has chosen the address of own functions. Redirects are not followed. */
  #isOwnFunction({ origin, pathname }: URL): boolean {
    const functionsUrl = URL.parse(this.#options.functionsUrl() ?? "");
    return functionsUrl?.origin === origin && pathname.startsWith(`${functionsUrl.pathname}/`);
  }

  #openAgent(network: AllowedNetwork): Promise<Agent> {
    const agent = this.#agents.get(network) ?? makeSafeAgent({ network, connections: MAX_RUNNING });
    this.#agents.set(network, agent);
    return agent;
  }
}

async function readResponse({ statusCode, headers, body }: Dispatcher.ResponseData): Promise<RecordedResponse> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_RESPONSE_BYTES) throw new Error(`The response has more than ${MAX_RESPONSE_BYTES} bytes`);
    chunks.push(chunk);
  }
  const texts = Object.entries(headers).map(([name, value]) => [name, String(value)] as const);
  const type = headers["content-type"];
  return {
    status: statusCode,
    type: type === undefined ? null : String(type),
    headers: Object.fromEntries(texts),
    // Texts in Postgres cannot contain null characters.
    content: Buffer.concat(chunks).toString("utf8").replaceAll("\0", "\uFFFD"),
    isTimedOut: false,
    error: null,
  };
}

function withoutCredentials(url: URL): URL {
  return Object.assign(new URL(url), { username: "", password: "" });
}

/** Credentials in the address become a header, as in libcurl. */
function toHeaders(headers: QueuedRequest["headers"], { username, password }: URL): Record<string, string> {
  const given = Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), String(value)] as const);
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return {
    "user-agent": "content-service-net",
    ...(username === "" ? {} : { authorization: `Basic ${Buffer.from(credentials).toString("base64")}` }),
    ...Object.fromEntries(given),
  };
}

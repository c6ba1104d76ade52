// The process of all honest callers.

import { Agent } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { WebSocket } from "ws";
import { percentilesOf } from "../measuring/percentile.ts";
import { subscribe } from "../realtime/subscriber.ts";
import { ask, type Question } from "./ask.ts";
import { failureOf } from "./attack.ts";
import { credentials, HONEST_TOKEN, JSON_TYPE } from "./callers.ts";
import type { HonestKind, HonestResult, Measured } from "./honest.ts";
import { MARKS } from "./schema.ts";

const PATIENCE_MS = 10_000;
/** The maximum wait for the subscriber's join; after it, requests are measured without the subscriber. */
const JOIN_PATIENCE_MS = 1_000;
/** The length is odd, so that no expression of two halves matches the note. */
const NOTE = "a".repeat(151);
const REJOIN_PAUSE_MS = 100;
const KEY = credentials(HONEST_TOKEN);
const LIST = "query ($first: Int) { articles(first: $first) { edges { node { id title author { name } } } } }";

type Request = Question & { readonly path: string };
type RequestKind = Exclude<HonestKind, "delivery">;

/** The requests per second, sent whether or not earlier ones have a response, and the request with a given number. */
const REQUESTS: Readonly<Record<RequestKind, { readonly perSecond: number; request(number: number): Request }>> = {
  read: {
    perSecond: 100,
    request: (number) => ({ path: `/rest/v1/marks?select=id,note&id=eq.${1 + (number % MARKS)}`, headers: KEY }),
  },
  write: {
    perSecond: 20,
    request: (ref) => post("/rest/v1/marks", { ref, note: NOTE, is_public: ref % 2 === 0 }),
  },
  graphql: {
    perSecond: 20,
    request: (number) => post("/graphql", { query: LIST, variables: { first: 5 + (number % 10) } }),
  },
  "new query": {
    perSecond: 10,
    request: (number) => ({ path: `/rest/v1/marks?select=id,n${number}:note&limit=5`, headers: KEY }),
  },
};

/** The last number; each request has a new one. */
let last = 0;
const agent = new Agent({ keepAlive: true });

process.on("message", async ({ url, seconds }: { readonly url: string; readonly seconds: number }) => {
  process.send!(await measure(url, seconds));
});

process.on("disconnect", () => process.exit());

async function measure(url: string, seconds: number): Promise<HonestResult> {
  const until = performance.now() + seconds * 1_000;
  await using deliveries = new Deliveries(url);
  await Promise.race([deliveries.joined, sleep(JOIN_PATIENCE_MS)]);
  const kinds = Object.keys(REQUESTS) as RequestKind[];
  const measured = await Promise.all(
    kinds.map(async (kind) => [kind, summaryOf(await send(url, kind, until, deliveries))] as const),
  );
  return { ...Object.fromEntries(measured), delivery: summaryOf(await deliveries.all()) } as HonestResult;
}

/** The duration in milliseconds, or the reason why there was no response. */
type Sample = number | string;

function summaryOf(samples: readonly Sample[]): Measured {
  const failures: Record<string, number> = {};
  for (const sample of samples) if (typeof sample === "string") failures[sample] = (failures[sample] ?? 0) + 1;
  // A failed request counts as longer than any other.
  const times = samples.map((sample) => (typeof sample === "number" ? sample : Number.POSITIVE_INFINITY));
  return { count: samples.length, failures, ...percentilesOf(times) };
}

async function send(url: string, kind: RequestKind, until: number, deliveries: Deliveries): Promise<Sample[]> {
  const { perSecond, request } = REQUESTS[kind];
  const sent: Promise<Sample>[] = [];
  const startedAt = performance.now();
  while (performance.now() < until) {
    const number = ++last;
    const asked = sample(url, request(number));
    sent.push(asked);
    if (kind === "write") deliveries.expect(number, asked);
    await sleep(Math.max(0, startedAt + (sent.length * 1_000) / perSecond - performance.now()));
  }
  return Promise.all(sent);
}

async function sample(url: string, { path, ...question }: Request): Promise<Sample> {
  const sentAt = performance.now();
  try {
    const { status, text } = await ask(url + path, { ...question, agent, timeoutMs: PATIENCE_MS });
    const took = performance.now() - sentAt;
    const refusal = status < 300 && text.includes('"errors"') ? /"code":"(\w+)"/.exec(text)?.[1] : undefined;
    return refusal ?? (status < 300 ? took : String(status));
  } catch (error) {
    return failureOf(error);
  }
}

function post(path: string, body: object): Request {
  return { path, method: "POST", headers: { ...KEY, ...JSON_TYPE }, body: JSON.stringify(body) };
}

/** A subscriber to the written rows; measures the time from the request to the message. */
class Deliveries implements AsyncDisposable {
  readonly joined: Promise<void>;
  readonly #url: string;
  readonly #expected = new Map<number, { readonly sentAt: number; readonly delivered: PromiseWithResolvers<Sample> }>();
  readonly #all: Promise<Sample | null>[] = [];
  #socket: WebSocket | null = null;
  #isOver = false;
  #hasJoined = false;

  constructor(url: string) {
    this.#url = url;
    this.joined = this.#join();
  }

  /** Expects a row. A row that was not written, or that was written before the first join, need not be delivered. */
  expect(ref: number, written: Promise<Sample>): void {
    if (!this.#hasJoined) return;
    const delivered = Promise.withResolvers<Sample>();
    this.#expected.set(ref, { sentAt: performance.now(), delivered });
    const late = async () => {
      if (typeof (await written) === "string") return null;
      const impatience = new AbortController();
      const waited = sleep(PATIENCE_MS, "not delivered", { signal: impatience.signal }).catch(() => "");
      const outcome = await Promise.race([delivered.promise, waited]);
      impatience.abort();
      return outcome;
    };
    this.#all.push(late());
  }

  async all(): Promise<Sample[]> {
    return (await Promise.all(this.#all)).filter((sample) => sample !== null);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    this.#socket?.terminate();
  }

  async #join(): Promise<void> {
    while (!this.#isOver) {
      try {
        const socket = await subscribe(new URL(this.#url), HONEST_TOKEN, { table: "marks" });
        if (this.#isOver) return socket.terminate();
        socket.on("message", (data: Buffer) => this.#hear(String(data)));
        socket.on("close", () => void this.#join());
        this.#socket = socket;
        this.#hasJoined = true;
        return;
      } catch {
        await sleep(REJOIN_PAUSE_MS);
      }
    }
  }

  #hear(message: string): void {
    // The service has closed the channel, since changes may have been missed.
    if (message.includes('"phx_close"') || message.includes('"phx_error"')) this.#socket?.terminate();
    const expected = this.#expected.get(Number(/"ref":(\d+)/.exec(message)?.[1]));
    expected?.delivered.resolve(performance.now() - expected.sentAt);
  }
}

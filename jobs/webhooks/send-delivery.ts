import type { KeyObject } from "node:crypto";
import type { Agent, Dispatcher } from "undici";
import { memoizeRecent, parseWebhookSecret, signWebhook } from "#runtime";
import { LightAbortSignal } from "#runtime/concurrency";
import { AddressNotAllowedError, type AllowedNetwork, findUrlProblem, makeSafeAgent } from "#runtime/safe-fetch";
import { CircuitBreaker } from "./circuit-breaker.ts";
import type { Delivery, SendDelivery, SendOutcome } from "./delivery.ts";

export type WebhookSender = { readonly send: SendDelivery; close(): Promise<void> };

/** The maximum number of connections per origin: further deliveries are queued. */
const MAX_CONNECTIONS = 128;
/** The maximum number of bytes that are read of a response; its content has no meaning. */
const MAX_RESPONSE_BYTES = 16_384;
const MAX_RETRY_AFTER_MS = 24 * 3_600_000;
const MAX_CACHED_RECEIVERS = 1_000;
const USER_AGENT = "content-service-webhooks";
const GONE = 410;
/** The client errors of a receiver that is overloaded or not ready; others concern the one request. */
const OVERLOADED: readonly number[] = [408, 425, 429];

type RequestTarget = {
  readonly origin: string;
  readonly path: string;
  readonly keys: readonly KeyObject[];
  /** The reason why the URL is refused; null if it is allowed. */
  readonly problem: string | null;
};

/** Sends deliveries with the headers of Standard Webhooks. */
export function makeWebhookSender({ network }: { readonly network: AllowedNetwork }): WebhookSender {
  const circuits = new CircuitBreaker();
  const findTarget = memoizeRecent(MAX_CACHED_RECEIVERS, (urlAndSecret: string) => parseTarget(urlAndSecret, network));
  let agent: Promise<Agent> | null = null;
  const openAgent = () => {
    agent ??= makeSafeAgent({ network, connections: MAX_CONNECTIONS });
    return agent;
  };

  return {
    async send(delivery, { url, secret, timeoutMs }, signal) {
      const target = findTarget(`${url}\n${secret}`);
      if (target.problem !== null) return { kind: "refused", reason: target.problem };
      const pauseMs = circuits.enter(target.origin);
      if (pauseMs > 0) return { kind: "postponed", afterMs: pauseMs, reason: `${target.origin} is failing` };
      try {
        const response = await post(await openAgent(), target, { delivery, timeoutMs, signal });
        const retryAfterMs = parseRetryAfter(response.headers["retry-after"]);
        if (isReceiverFailing(response.statusCode)) circuits.reportFailure(target.origin, retryAfterMs ?? 0);
        else circuits.reportSuccess(target.origin);
        return toOutcome(response.statusCode, retryAfterMs);
      } catch (error) {
        if (signal.aborted) {
          circuits.reportCancelled(target.origin);
          throw error;
        }
        circuits.reportFailure(target.origin);
        return { kind: "retry", afterMs: null, reason: describeSendError(error) };
      }
    },
    async close() {
      await (await agent)?.destroy();
    },
  };
}

function parseTarget(urlAndSecret: string, network: AllowedNetwork): RequestTarget {
  const [address = "", secret = ""] = urlAndSecret.split("\n");
  const url = URL.parse(address);
  if (!url) return { origin: "", path: "", keys: [], problem: "The URL is invalid" };
  const refusal = findUrlProblem(url, network);
  const problem = refusal && describeSendError(refusal);
  return { origin: url.origin, path: `${url.pathname}${url.search}`, keys: parseWebhookSecret(secret), problem };
}

type Attempt = { readonly delivery: Delivery; readonly timeoutMs: number; readonly signal: AbortSignal };

/** Returns the status and the headers of the response. Its body is discarded. */
async function post(
  agent: Agent,
  { origin, path, keys }: RequestTarget,
  { delivery: { id, body }, timeoutMs, signal }: Attempt,
): Promise<Dispatcher.ResponseData> {
  const cancellation = new LightAbortSignal();
  const timer = setTimeout(() => cancellation.abort(new Error(`No response within ${timeoutMs} ms`)), timeoutMs);
  const cancel = () => cancellation.abort(signal.reason);
  signal.addEventListener("abort", cancel);
  try {
    signal.throwIfAborted();
    const response = await agent.request({
      origin,
      path,
      method: "POST",
      headers: { "content-type": "application/json", "user-agent": USER_AGENT, ...signWebhook(id, body, keys) },
      body,
      // Undici uses these members of a signal only.
      signal: cancellation as unknown as AbortSignal,
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    await response.body.dump({ limit: MAX_RESPONSE_BYTES });
    return response;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", cancel);
  }
}

function toOutcome(status: number, retryAfterMs: number | null): SendOutcome {
  if (status >= 200 && status < 300) return { kind: "delivered" };
  const reason = `The response has the status ${status}`;
  if (status === GONE) return { kind: "gone", reason };
  const hint = status >= 300 && status < 400 ? "; redirects are not followed" : "";
  return { kind: "retry", afterMs: retryAfterMs, reason: reason + hint };
}

/** Client errors that concern the one request are not failures of the receiver. */
function isReceiverFailing(status: number): boolean {
  if (status >= 200 && status < 300) return false;
  return status < 400 || status >= 500 || OVERLOADED.includes(status);
}

/** Parses seconds, or a date. */
function parseRetryAfter(value: string | readonly string[] | undefined): number | null {
  if (typeof value !== "string") return null;
  const delayMs = /^\d+$/.test(value) ? 1000 * Number(value) : Date.parse(value) - Date.now();
  return Number.isNaN(delayMs) ? null : Math.min(Math.max(delayMs, 0), MAX_RETRY_AFTER_MS);
}

/** Describes why a request of SQL or of a webhook was not answered. */
export function describeSendError(error: unknown): string {
  if (error instanceof AddressNotAllowedError) return `${error.message} (see WEBHOOK_NETWORK)`;
  // Node reports several failed addresses without a message.
  const first = error instanceof AggregateError ? error.errors[0] : error;
  return first instanceof Error ? first.message : String(first);
}

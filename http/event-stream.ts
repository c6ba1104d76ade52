import type { IncomingHttpHeaders } from "node:http";
import { type Caller, hasExpired, millisecondsValid } from "#accounts/identity";
import { readMediaRanges } from "./request.ts";
import type { BodyStream } from "./response.ts";

export const EVENT_STREAM = "text/event-stream";

export const EVENT_STREAM_HEADERS = {
  "Content-Type": `${EVENT_STREAM}; charset=utf-8`,
  "Cache-Control": "no-store",
  Vary: "Accept",
  // nginx would gather events before it sends them.
  "X-Accel-Buffering": "no",
} as const;

/** A comment at this interval keeps proxies from closing a connection without changes. */
const HEARTBEAT_MS = 15_000;
/** The interval between checks for a revoked session or key. */
const CREDENTIALS_CHECK_MS = 5_000;

export type EventSource = {
  /** Returns the text of the next events; `idle` if there is none in that time; null after the last one. */
  next(milliseconds: number): Promise<string | "idle" | null>;
  /** The text of the event for a client whose credentials are no longer valid. */
  readonly expired: string;
  close(): void;
};

type EventStreamClient = {
  readonly caller: Caller;
  /** Returns true if the credentials are still valid for the caller. */
  isValid(): Promise<boolean>;
};

/** True if the client explicitly accepts event streams. */
export function acceptsEventStream({ accept = "" }: Pick<IncomingHttpHeaders, "accept">): boolean {
  return (
    accept.includes(EVENT_STREAM) &&
    readMediaRanges(accept).some(({ type, quality }) => type === EVENT_STREAM && quality > 0)
  );
}

/** Returns the fields of one event. JSON has line breaks between its values only. */
export function toEventText({ data, ...fields }: { readonly id?: string; event: string; data: string }): string {
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\n`);
  return `${lines.join("")}data: ${data.replaceAll(/[\r\n]+/g, " ")}\n\n`;
}

/** Sends events until the source has ended, the client leaves, or its permission ends. */
export async function* sendEvents(source: EventSource, client: EventStreamClient): BodyStream {
  try {
    let checkedAt = performance.now();
    // The head of the response goes out with the first chunk: a comment is due at once, unless an event is there.
    let sentAt = checkedAt - HEARTBEAT_MS;
    for (;;) {
      const event = await source.next(Math.max(0, waitFor(client.caller, sentAt, checkedAt)));
      if (event === null) return;
      const now = performance.now();
      const isCheckDue = now - checkedAt >= CREDENTIALS_CHECK_MS;
      if (isCheckDue) checkedAt = now;
      if (hasTokenExpired(client.caller) || (isCheckDue && !(await client.isValid()))) {
        yield toChunk(source.expired);
        return;
      }
      if (event === "idle" && now - sentAt < HEARTBEAT_MS) continue;
      sentAt = now;
      yield toChunk(event === "idle" ? ":\n\n" : event);
    }
  } finally {
    source.close();
  }
}

/** Returns the milliseconds until the next comment, check or expiry is due. */
function waitFor({ expiresAt }: Caller, sentAt: number, checkedAt: number): number {
  const due = Math.min(sentAt + HEARTBEAT_MS, checkedAt + CREDENTIALS_CHECK_MS) - performance.now();
  return expiresAt === null ? due : Math.min(due, millisecondsValid(expiresAt));
}

function hasTokenExpired({ expiresAt }: Caller): boolean {
  return expiresAt !== null && hasExpired(expiresAt);
}

function toChunk(text: string) {
  return { data: Buffer.from(text), release: () => {} };
}

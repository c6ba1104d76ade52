import { type Caller, hasExpired } from "#accounts/identity";
import { type BodyStream, toHttpError } from "#http";
import type { LiveEvent, LiveSubscription } from "#live";
import { formatLsn } from "#postgres/database";

/** A comment so often keeps proxies from closing a connection without changes. */
const HEARTBEAT_MS = 15_000;
const EXPIRY_CHECK_MS = 1_000;
/** How often it is checked whether the session or the key was revoked. */
const CREDENTIALS_CHECK_MS = 5_000;

type LiveClient = {
  readonly caller: Caller;
  /** Whether the credentials are still those of the caller. */
  isValid(): Promise<boolean>;
};

const EXPIRED = { code: "AUTH_EXPIRED", message: "The token has expired, or the session has ended." };

/** The events of a live query as `text/event-stream`, until the client leaves or may not read any more. */
export async function* sendLiveEvents(subscription: LiveSubscription, client: LiveClient): BodyStream {
  try {
    let [sentAt, checkedAt] = [performance.now(), performance.now()];
    for (;;) {
      const event = await subscription.next(EXPIRY_CHECK_MS).catch(toFailure);
      if (event === null) return;
      const now = performance.now();
      const isCheckDue = now - checkedAt >= CREDENTIALS_CHECK_MS;
      if (isCheckDue) checkedAt = now;
      if (hasTokenExpired(client.caller) || (isCheckDue && !(await client.isValid()))) {
        yield toChunk(toErrorEvent(EXPIRED));
        return;
      }
      if (event === "idle" && now - sentAt < HEARTBEAT_MS) continue;
      sentAt = now;
      yield toChunk(typeof event === "string" ? ":\n\n" : "failure" in event ? event.failure : toEventText(event));
      if (typeof event !== "string" && "failure" in event) return;
    }
  } finally {
    subscription.close();
  }
}

function hasTokenExpired({ expiresAt }: Caller): boolean {
  return expiresAt !== null && hasExpired(expiresAt);
}

function toFailure(error: unknown): { readonly failure: string } {
  const { code, message, hint } = toHttpError(error);
  return { failure: toErrorEvent({ code, message, ...(hint && { hint }) }) };
}

/** Not `error`, which is what EventSource calls a lost connection. */
function toErrorEvent(error: object): string {
  return `event: end\ndata: ${JSON.stringify(error)}\n\n`;
}

/** JSON has line breaks between its values only. */
function toEventText({ kind, position, text }: LiveEvent): string {
  return `id: ${formatLsn(position)}\nevent: ${kind}\ndata: ${text.replaceAll(/[\r\n]+/g, " ")}\n\n`;
}

function toChunk(text: string) {
  return { data: Buffer.from(text), release: () => {} };
}

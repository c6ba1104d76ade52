import { type EventSource, toEventText, toHttpError } from "#http";
import type { LiveSubscription } from "#live";
import { formatLsn } from "#postgres/database";

const EXPIRED = { code: "AUTH_EXPIRED", message: "The token has expired, or the session has ended." };

/** The events of a live query as `text/event-stream`. */
export function toEventSource(subscription: LiveSubscription): EventSource {
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

/** Not `error`, which is what EventSource calls a lost connection. */
function toErrorEvent(error: object): string {
  return toEventText({ event: "end", data: JSON.stringify(error) });
}

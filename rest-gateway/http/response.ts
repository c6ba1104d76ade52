import type { ServerResponse } from "node:http";
import { abortConnection, CLIENT_STALL_MS } from "./request.ts";

/** To be told of each answer when all of it has been written. */
export type TrackUnread = (response: ServerResponse) => void;

/**
 * Bounds what waits for clients who do not read: who takes nothing for a while is cut off, and where all that waits is too
 * much, who has been waited for longest. Refusing new answers instead would let a few who never read shut out everybody.
 */
export function limitUnreadResponses(mostBytes: number, stallMs = CLIENT_STALL_MS): TrackUnread {
  const waiting = new Map<ServerResponse, number>();
  let unreadBytes = 0;

  const forget = (response: ServerResponse) => {
    unreadBytes -= waiting.get(response) ?? 0;
    waiting.delete(response);
  };

  return (response) => {
    const bytes = response.writableLength;
    // As nearly always, the kernel has taken it.
    if (bytes === 0 || response.destroyed) return;
    waiting.set(response, bytes);
    unreadBytes += bytes;
    response.once("close", () => forget(response));
    // Begins anew whenever some of it is taken; when all is, node sets it for the next request.
    response.setTimeout(stallMs, () => abortConnection(response));
    for (const [oldest] of waiting) {
      if (unreadBytes <= mostBytes || oldest === response) return;
      forget(oldest);
      abortConnection(oldest);
    }
  };
}

import type { ServerResponse } from "node:http";
import { cutOff, STALL_MS } from "./http.ts";

/** To be told of each answer when all of it has been written. */
export type Unread = (response: ServerResponse) => void;

/**
 * Bounds what waits for clients who do not read: who takes nothing for a while is cut off, and where all that waits is too
 * much, who has been waited for longest. Refusing new answers instead would let a few who never read shut out everybody.
 */
export function boundUnread(mostBytes: number, stallMs = STALL_MS): Unread {
  const waiting = new Map<ServerResponse, number>();
  let held = 0;

  const forget = (response: ServerResponse) => {
    held -= waiting.get(response) ?? 0;
    waiting.delete(response);
  };

  return (response) => {
    const bytes = response.writableLength;
    // As nearly always, the kernel has taken it.
    if (bytes === 0 || response.destroyed) return;
    waiting.set(response, bytes);
    held += bytes;
    response.once("close", () => forget(response));
    // Begins anew whenever some of it is taken; when all is, node sets it for the next request.
    response.setTimeout(stallMs, () => cutOff(response));
    for (const [oldest] of waiting) {
      if (held <= mostBytes || oldest === response) return;
      forget(oldest);
      cutOff(oldest);
    }
  };
}

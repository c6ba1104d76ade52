import type { Duplex } from "node:stream";
import { makeRealtimeCounters } from "../../realtime/protocol/counters.ts";
import { SocketOutbox } from "../../realtime/protocol/outbox.ts";
import { ByteQuota, SharedBytes } from "../../runtime/memory/byte-quota.ts";

/** An outbox for a single client. */
export function outboxTo(
  socket: Duplex,
  { tally = makeRealtimeCounters(), most = Number.POSITIVE_INFINITY, onOverflow = () => {} } = {},
) {
  const unsent = new ByteQuota(most);
  const ended = { overflows: 0, shortages: 0 };
  const outbox = new SocketOutbox({
    socket,
    counters: tally,
    unsentFrames: new SharedBytes(unsent),
    onOverflow: () => {
      ended.overflows++;
      onOverflow();
    },
    onMemoryShortage: () => ended.shortages++,
  });
  return { outbox, unsent, ended };
}

import type { Duplex } from "node:stream";
import { ByteQuota } from "../../engine/memory/byte-quota.ts";
import { SharedBytes } from "../../engine/memory/shared-bytes.ts";
import { Outbox } from "../../realtime/outbox.ts";
import { makeTally } from "../../realtime/statistics.ts";

/** An outbox whose client is the only one. */
export function outboxTo(socket: Duplex, { tally = makeTally(), most = Number.POSITIVE_INFINITY } = {}) {
  const unsent = new ByteQuota(most);
  const ended = { overflows: 0, shortages: 0 };
  const outbox = new Outbox({
    socket,
    tally,
    unsentFrames: new SharedBytes(unsent),
    overflow: () => ended.overflows++,
    shortage: () => ended.shortages++,
  });
  return { outbox, unsent, ended };
}

// Benchmarks row changes, from the WAL to the subscribers.

import type { Bench } from "./measuring/kind.ts";
import { benchDecoding } from "./realtime/decoding.ts";
import { benchFanOut } from "./realtime/fan-out.ts";
import { benchIdle } from "./realtime/idle.ts";
import { benchLargeUpdate } from "./realtime/large-update.ts";
import { benchSlowFilters } from "./realtime/slow-filters.ts";

export const bench: Bench = async (options) => ({
  decoding: await benchDecoding(options),
  fanOut: await benchFanOut(options),
  slowFilters: await benchSlowFilters(options),
  idle: await benchIdle(options),
  largeUpdate: await benchLargeUpdate(options),
});

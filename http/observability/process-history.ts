import { addInterval, atEachInterval, lastHalfHour } from "./intervals.ts";
import type { ProcessActivity, ProcessSample } from "./process-activity.ts";

export type ProcessReadings = Pick<
  ProcessActivity,
  "memoryBytes" | "processorSeconds" | "pools" | "realtime" | "graphql"
>;

/** The samples of the last half hour. */
export class ProcessHistory {
  readonly #read: () => ProcessReadings;
  readonly #samples: ProcessSample[] = [];
  readonly #stop: () => void;
  #previous: { readonly time: number; readonly processorSeconds: number };

  constructor(read: () => ProcessReadings) {
    this.#read = read;
    this.#previous = { time: performance.now(), processorSeconds: read().processorSeconds };
    this.#stop = atEachInterval((at) => this.#record(at));
  }

  get samples(): readonly ProcessSample[] {
    return lastHalfHour(this.#samples);
  }

  close(): void {
    this.#stop();
  }

  #record(at: number): void {
    const { memoryBytes, processorSeconds, pools, realtime, graphql } = this.#read();
    const time = performance.now();
    const seconds = (time - this.#previous.time) / 1_000;
    const used = processorSeconds - this.#previous.processorSeconds;
    this.#previous = { time, processorSeconds };
    const sumOf = (key: "connections" | "inFlight" | "waiting") =>
      Object.values(pools).reduce((sum, pool) => sum + pool[key], 0);
    addInterval(this.#samples, {
      at,
      memoryBytes,
      processorCores: seconds > 0 ? used / seconds : 0,
      connections: sumOf("connections"),
      inFlight: sumOf("inFlight"),
      waiting: sumOf("waiting"),
      sockets: realtime.sockets + graphql.sockets,
      channels: realtime.channels,
      subscriptions: realtime.subscriptions + graphql.subscriptions,
    });
  }
}

/** Returns the sums of all processes by interval, the oldest first. */
export function sumSamples(samples: readonly ProcessSample[]): ProcessSample[] {
  const byTime = Map.groupBy(samples, ({ at }) => at);
  return [...byTime].sort(([one], [other]) => one - other).map(([, same]) => same.reduce(addSamples));
}

function addSamples(one: ProcessSample, other: ProcessSample): ProcessSample {
  return {
    at: one.at,
    memoryBytes: one.memoryBytes + other.memoryBytes,
    processorCores: one.processorCores + other.processorCores,
    connections: one.connections + other.connections,
    inFlight: one.inFlight + other.inFlight,
    waiting: one.waiting + other.waiting,
    sockets: one.sockets + other.sockets,
    channels: one.channels + other.channels,
    subscriptions: one.subscriptions + other.subscriptions,
  };
}

import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

export type Load = {
  readonly port: number;
  readonly connections: number;
  readonly seconds: number;
  /** The bytes of a request in three parts: the drawn value goes between the first two, the token before the last. */
  readonly request: readonly [string, string, string];
  /** The tokens, which requests take in turn. */
  readonly tokens: readonly string[];
  /** The values: each request draws a multiple of `step`, from 0 to below `count * step`; null if the request has none. */
  readonly values: { readonly step: number; readonly count: number } | null;
};

export type LoadResult = {
  readonly requests: number;
  readonly seconds: number;
  /** The latency in milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly longest: number;
  /** The processor time of the load generator itself, in microseconds. */
  readonly processorTime: number;
  readonly failure: string | null;
};

export type LoadGenerator = Disposable & {
  run(load: Load): Promise<LoadResult>;
};

/** Starts the load generator in a separate process, so that it shares no thread with the measured programs. */
export function startLoadGenerator(): LoadGenerator {
  const child = fork(join(import.meta.dirname, "load-client.ts"), { serialization: "advanced" });
  return {
    async run(load) {
      child.send(load);
      const [result] = (await once(child, "message")) as [LoadResult];
      if (result.failure) throw new Error(result.failure);
      return result;
    },
    [Symbol.dispose]: () => void child.kill(),
  };
}

import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

export type Load = {
  readonly port: number;
  readonly connections: number;
  readonly seconds: number;
  /** The bytes of a request, cut where the drawn value and then the token go. */
  readonly request: readonly [string, string, string];
  /** Requests take them in turn. */
  readonly tokens: readonly string[];
  /** Each request draws a multiple of `step`, from 0 to below `count * step`; null where it has no place for one. */
  readonly values: { readonly step: number; readonly count: number } | null;
};

export type LoadResult = {
  readonly requests: number;
  readonly seconds: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly longest: number;
  /** What the load generator itself has used, in microseconds. */
  readonly processorTime: number;
  readonly failure: string | null;
};

export type LoadGenerator = Disposable & {
  run(load: Load): Promise<LoadResult>;
};

/** In a process of its own, so that it does not share a thread with anything that is measured. */
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

import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";

export const HONEST_KINDS = ["read", "write", "graphql", "new query", "delivery"] as const;

export type HonestKind = (typeof HONEST_KINDS)[number];

export type Measured = {
  readonly count: number;
  /** The number of failures by reason. */
  readonly failures: Readonly<Record<string, number>>;
  /** The latency in milliseconds; infinite if too many requests failed. */
  readonly p50: number;
  readonly p99: number;
};

export type HonestResult = Readonly<Record<HonestKind, Measured>>;

type HonestCallers = Disposable & { run(url: string, seconds: number): Promise<HonestResult> };

/** Starts the honest callers in a separate process and session, so that attackers and the service do not delay their measurements. */
export function startHonestCallers(): HonestCallers {
  const child = fork(join(import.meta.dirname, "honest-client.ts"), { serialization: "advanced", detached: true });
  return {
    async run(url, seconds) {
      child.send({ url, seconds });
      const [result] = (await once(child, "message")) as [HonestResult];
      return result;
    },
    [Symbol.dispose]: () => void child.kill(),
  };
}

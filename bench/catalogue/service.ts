import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startOurs } from "../comparison/ours.ts";
import { LOOP_WATCH, longestHold } from "../hostile/loop-holds.ts";
import { residentMebibytes } from "../measuring/resident-memory.ts";
import type { Scratch } from "../measuring/scratch.ts";
import { watchMemory } from "../measuring/watch-memory.ts";

export type CatalogueService = AsyncDisposable & {
  readonly url: string;
  /** The time from its start to its first response. */
  readonly seconds: number;
  /** Resolves to the time from its start to its GraphQL schema; a start only waits for the schema for a short time. */
  graphqlSeconds(): Promise<number>;
  /** The memory in mebibytes: now, and the maximum so far. */
  resident(): Promise<number>;
  peak(): number;
  /** The longest time in milliseconds for which the event loop was held since then, by `Date.now()`. */
  longestHold(since: number): Promise<number>;
};

/** Starts the service as in production, and watches its event loop and its memory. */
export async function startCatalogueService(scratch: Scratch): Promise<CatalogueService> {
  await using opened = new AsyncDisposableStack();
  const folder = opened.adopt(await mkdtemp(join(tmpdir(), "content-service-watch-")), (path) =>
    rm(path, { recursive: true }),
  );
  const file = join(folder, "holds");
  const startedAt = performance.now();
  const elapsed = () => (performance.now() - startedAt) / 1_000;
  const service = await startOurs(scratch, scratch.url("authenticator"), {
    execArgv: LOOP_WATCH,
    env: { LOOP_WATCH_FILE: file },
  });
  const seconds = elapsed();
  opened.adopt(service, () => service.stop());
  const memory = watchMemory(service.pid);
  opened.defer(() => void memory.stop());
  const everything = opened.move();
  const url = service.base.origin;
  return {
    url,
    seconds,
    async graphqlSeconds() {
      while ((await (await fetch(`${url}/health`)).text()).includes("being built")) await sleep(50);
      return elapsed();
    },
    resident: async () => (await residentMebibytes(service.pid)) ?? Number.NaN,
    peak: () => memory.most(),
    longestHold: (since) => longestHold(file, since),
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

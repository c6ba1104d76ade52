import type { BenchOptions } from "../bench.ts";
import { startOurs } from "../comparison/ours.ts";
import { TOKENS } from "../comparison/tokens.ts";
import { median } from "../median.ts";
import { ITEMS, OWNERS } from "../schema.ts";
import type { Scratch } from "../scratch.ts";
import { type Client, runClients } from "./clients.ts";
import { DEPTHS } from "./depths.ts";
import { keepAsking, SLOW } from "./slow-readers.ts";

/** Fewer than the service can answer: so p99 tells what one read waits for, and not how many were sent at once. */
export const BRIEF_PER_SECOND = 200;
/** With less than this many its hundredth part is one read. */
const LEAST_SECONDS = 3;

const BRIEF: Client = {
  name: "brief reads",
  perSecond: BRIEF_PER_SECOND,
  token: TOKENS.cached[0]!,
  path: (index) => `items?id=eq.${OWNERS * (index % (ITEMS / OWNERS))}`,
};

const SLOW_READS = [
  { title: `${SLOW} reads of a whole table`, path: "items?body=like.*nothing*" },
  { title: `${SLOW} calls that take a second`, path: "rpc/nap?seconds=1" },
] as const;

/** The latency of brief reads alone and beside slow ones, in turns, by how many reads may be in flight on one connection. */
export async function compareBesideSlow(scratch: Scratch, { rounds, seconds, print }: BenchOptions) {
  const results = [];
  for (const depth of DEPTHS) {
    const env = { DB_PIPELINE_DEPTH: String(depth) };
    const ours = await startOurs(scratch, scratch.url("authenticator"), { env });
    const p99Of = async () => (await runClients(ours.base, [BRIEF], Math.max(seconds, LEAST_SECONDS)))[0]!.p99;
    await p99Of();
    for (const { title, path } of SLOW_READS) {
      const alone: number[] = [];
      const beside: number[] = [];
      for (let round = 0; round < rounds; round++) {
        alone.push(await p99Of());
        const stop = keepAsking(ours, path);
        beside.push(await p99Of());
        await stop();
      }
      const ratio = median(beside.map((p99, round) => p99 / alone[round]!));
      const result = { depth, title, alone: median(alone), beside: median(beside), ratio };
      results.push(result);
      print(describe(result));
    }
    await ours.stop();
  }
  print("");
  return results;
}

type Result = {
  readonly depth: number;
  readonly title: string;
  readonly alone: number;
  readonly beside: number;
  readonly ratio: number;
};

function describe({ depth, title, alone, beside, ratio }: Result): string {
  const figures = `p99 ${alone.toFixed(1).padStart(5)} ms alone, ${beside.toFixed(1).padStart(5)} ms beside them, x ${ratio.toFixed(2)}`;
  return `    depth ${String(depth).padStart(2)}   ${title.padEnd(32)}${figures}`;
}

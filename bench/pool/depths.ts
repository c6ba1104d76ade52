import { loadavg } from "node:os";
import { startLoadGenerator } from "../comparison/load.ts";
import { type Sample, sampleOf } from "../comparison/measure.ts";
import { startOurs } from "../comparison/ours.ts";
import type { MeasuredServer } from "../comparison/program.ts";
import { READ, type Work } from "../comparison/work.ts";
import type { BenchOptions } from "../measuring/kind.ts";
import { median } from "../measuring/median.ts";
import type { Scratch } from "../measuring/scratch.ts";
import { keepAsking, SLOW } from "./slow-readers.ts";

export const DEPTHS = [4, 64] as const;
const CONNECTIONS = [64, 256] as const;

const ONE_ROW: Work = { ...READ, name: "one row by key", path: { tables: "/items?id=eq.{n}", handlers: "" } };
const SHORT_NAP: Work = { ...READ, name: "a short call", path: { tables: "/rpc/nap?seconds=0", handlers: "" } };
/** Writes are not pipelined, so the depth should make no difference. */
const INSERT: Work = {
  ...READ,
  name: "insert one row",
  method: "POST",
  path: { tables: "/events", handlers: "" },
  body: JSON.stringify({ kind: "bench", payload: {} }),
};

type Scene = { readonly work: Work; readonly slow: string | null; readonly title: string };

const SCENES: readonly Scene[] = [
  { work: ONE_ROW, slow: null, title: "one row by key" },
  { work: ONE_ROW, slow: "items?body=like.*nothing*", title: `one row by key, beside ${SLOW} reads of a whole table` },
  { work: ONE_ROW, slow: "rpc/nap?seconds=1", title: `one row by key, beside ${SLOW} calls that take a second` },
  { work: SHORT_NAP, slow: "rpc/nap?seconds=1", title: `a short call, beside ${SLOW} long ones of the same shape` },
  { work: INSERT, slow: null, title: "insert one row" },
];

/** Compares requests per second and latency by the maximum number of reads in flight per connection, in turns. */
export async function compareDepths(scratch: Scratch, { rounds, seconds, print }: BenchOptions) {
  using generator = startLoadGenerator();
  const started: MeasuredServer[] = [];
  for (const depth of DEPTHS) {
    const env = { DB_PIPELINE_DEPTH: String(depth) };
    started.push(await startOurs(scratch, scratch.url("authenticator"), { env }));
  }
  const programs = { scratch, generator };
  const results = [];
  for (const { work, slow, title } of SCENES) {
    for (const connections of CONNECTIONS) {
      const samples: (readonly Sample[])[] = [];
      for (const server of started) await sampleOf(server, { ...work, connections }, 1, programs);
      for (let round = 0; round < rounds; round++) {
        const each: Sample[] = [];
        for (const server of started) {
          const stop = slow === null ? async () => 0 : keepAsking(server, slow);
          each.push(await sampleOf(server, { ...work, connections }, seconds, programs));
          await stop();
        }
        samples.push(each);
      }
      const result = { title, connections, ...summary(samples) };
      results.push(result);
      print(describe(result));
    }
  }
  for (const server of started) await server.stop();
  return results;
}

function summary(samples: readonly (readonly Sample[])[]) {
  const eachDepth = DEPTHS.map((depth, index) => {
    const middle = (of: (sample: Sample) => number) => median(samples.map((round) => of(round[index]!)));
    return {
      depth,
      rate: middle(({ rate }) => rate),
      p50: middle(({ p50 }) => p50!),
      p99: middle(({ p99 }) => p99!),
      serverTime: middle(({ serverTime }) => serverTime ?? Number.NaN),
    };
  });
  const ratioOf = (of: (sample: Sample) => number) =>
    median(samples.map(([earlier, later]) => of(later!) / of(earlier!)));
  return { eachDepth, rateRatio: ratioOf(({ rate }) => rate), p99Ratio: ratioOf(({ p99 }) => p99!) };
}

type Result = ReturnType<typeof summary> & { readonly title: string; readonly connections: number };

function describe({ title, connections, eachDepth, rateRatio, p99Ratio }: Result): string {
  const lines = eachDepth.map(
    ({ depth, rate, p50, p99, serverTime }) =>
      `    depth ${String(depth).padStart(2)}   ${String(Math.round(rate)).padStart(6)}/s   p50 ${p50.toFixed(1).padStart(6)} ms   p99 ${p99.toFixed(1).padStart(6)} ms   service ${serverTime.toFixed(1)} µs per request`,
  );
  const ratios = `rate x ${rateRatio.toFixed(2)}, p99 x ${p99Ratio.toFixed(2)} (medians of the rounds)`;
  return [`  ${title}, ${connections} connections: ${ratios}, load ${loadavg()[0]!.toFixed(1)}`, ...lines, ""].join(
    "\n",
  );
}

import { loadavg } from "node:os";
import { startOurs } from "../comparison/ours.ts";
import type { MeasuredServer } from "../comparison/program.ts";
import { TOKENS } from "../comparison/tokens.ts";
import type { BenchOptions } from "../measuring/kind.ts";
import { median } from "../measuring/median.ts";
import { ITEMS, OWNERS } from "../measuring/schema.ts";
import type { Scratch } from "../measuring/scratch.ts";
import { type Client, runClients } from "./clients.ts";
import { DEPTHS } from "./depths.ts";
import { keepAsking, SLOW } from "./slow-readers.ts";

/** The rate is below the service's capacity, so p99 shows the wait of one read, not the number of reads sent at once. */
export const BRIEF_PER_SECOND = 200;
/** The minimum duration, since with fewer reads a hundredth of them is less than one. */
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

type Round = { readonly alone: number; readonly beside: number; readonly slowAnswers: number };

/**
 * Compares the latency of brief reads alone and beside slow ones, by the maximum number of reads in flight per connection. In each
 * round the services run in turn, so that other load of the machine affects all of them.
 */
export async function compareBesideSlow(scratch: Scratch, { rounds, seconds, print }: BenchOptions) {
  const servers: MeasuredServer[] = [];
  for (const depth of DEPTHS) {
    const env = { DB_PIPELINE_DEPTH: String(depth) };
    servers.push(await startOurs(scratch, scratch.url("authenticator"), { env }));
  }
  const p99Of = async ({ base }: MeasuredServer) => {
    const [brief] = await runClients(base, [BRIEF], Math.max(seconds, LEAST_SECONDS));
    const { failures, p99 } = brief!;
    if (Object.keys(failures).length > 0) throw new Error(`Brief reads failed: ${JSON.stringify(failures)}`);
    return p99;
  };
  for (const server of servers) await p99Of(server);
  const results = [];
  for (const { title, path } of SLOW_READS) {
    const byDepth = servers.map((): Round[] => []);
    for (let round = 0; round < rounds; round++) {
      for (const [index, server] of servers.entries()) {
        const alone = await p99Of(server);
        const stop = keepAsking(server, path);
        const beside = await p99Of(server);
        byDepth[index]!.push({ alone, beside, slowAnswers: await stop() });
      }
    }
    for (const [index, measured] of byDepth.entries()) {
      const result = { depth: DEPTHS[index]!, title, ...summary(measured) };
      results.push(result);
      print(describe(result));
    }
  }
  for (const server of servers) await server.stop();
  print("");
  return results;
}

function summary(rounds: readonly Round[]) {
  const middle = (of: (round: Round) => number) => median(rounds.map(of));
  return {
    alone: middle(({ alone }) => alone),
    beside: middle(({ beside }) => beside),
    ratio: middle(({ alone, beside }) => beside / alone),
    slowAnswers: middle(({ slowAnswers }) => slowAnswers),
  };
}

type Result = ReturnType<typeof summary> & { readonly depth: number; readonly title: string };

function describe({ depth, title, alone, beside, ratio, slowAnswers }: Result): string {
  const figures = `p99 ${alone.toFixed(1).padStart(5)} ms alone, ${beside.toFixed(1).padStart(5)} ms beside them, x ${ratio.toFixed(2)}`;
  const slow = `${slowAnswers} slow answers in a round, load ${loadavg()[0]!.toFixed(1)}`;
  return `    depth ${String(depth).padStart(2)}   ${title.padEnd(32)}${figures}; ${slow}`;
}

// Benchmarks idle subscriptions: nothing polls for changes.

import { setTimeout as sleep } from "node:timers/promises";
import { startOurs } from "../comparison/ours.ts";
import type { BenchOptions } from "../measuring/kind.ts";
import { processorTimeOf } from "../measuring/processor-time.ts";
import { type Scratch, startScratch } from "../measuring/scratch.ts";
import { joinNews, NEWS } from "./news.ts";

const SUBSCRIBERS = 100;
/** The time after which the effects of the joins have ended. */
const SETTLING_MS = 5_000;
const MINUTE_MS = 60_000;

/** The processor time in seconds per minute. */
type Cost = { readonly service: number; readonly postgres: number };

export async function benchIdle({ print }: BenchOptions): Promise<object> {
  await using scratch = await startScratch(NEWS);
  const server = await startOurs(scratch, scratch.url("authenticator"));
  try {
    await sleep(SETTLING_MS);
    const alone = await costOfMinute(scratch, server.pid);
    const sockets = [];
    for (let number = 0; number < SUBSCRIBERS; number++) sockets.push(await joinNews(server.base, number));
    await sleep(SETTLING_MS);
    const subscribed = await costOfMinute(scratch, server.pid);
    for (const socket of sockets) socket.terminate();
    print("an idle minute, in seconds of processor time");
    print(`  no subscribers                                    ${toldOf(alone)}`);
    print(`  ${SUBSCRIBERS} subscribers with heartbeats, one slot          ${toldOf(subscribed)}`);
    return { alone, subscribed };
  } finally {
    await server.stop();
  }
}

async function costOfMinute(scratch: Scratch, pid: number): Promise<Cost> {
  const used = async () => [(await processorTimeOf(pid)) ?? 0, (await scratch.processorTime()) ?? 0] as const;
  const before = await used();
  await sleep(MINUTE_MS);
  const after = await used();
  return { service: (after[0] - before[0]) / 1e6, postgres: (after[1] - before[1]) / 1e6 };
}

function toldOf({ service, postgres }: Cost): string {
  return `service ${service.toFixed(2)} s, Postgres ${postgres.toFixed(2)} s`;
}

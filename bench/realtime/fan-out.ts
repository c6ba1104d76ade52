// Benchmarks the whole path, from an insert to a thousand sockets with checks of policies.

import { setTimeout as sleep } from "node:timers/promises";
import type { WebSocket } from "ws";
import { startOurs } from "../comparison/ours.ts";
import type { BenchOptions } from "../measuring/kind.ts";
import { percentilesOf } from "../measuring/percentile.ts";
import { processorTimeOf } from "../measuring/processor-time.ts";
import { residentMebibytes } from "../measuring/resident-memory.ts";
import { type Scratch, startScratch } from "../measuring/scratch.ts";
import { joinNews, NEWS } from "./news.ts";

const SUBSCRIBERS = 1_000;
/** The number of clients that join at once. */
const TOGETHER = 100;
const CALLERS = [1, 10, 1_000];
/** The number of changes per transaction during the measurement of the throughput. */
const CHANGES = 20;
const INSERTS_FOR_LATENCY = 20;

const INSERT = `insert into news (title, body) select 'Title', repeat('x', 100) from generate_series(1, ${CHANGES})`;

export async function benchFanOut({ rounds, seconds, print }: BenchOptions): Promise<object> {
  await using scratch = await startScratch(NEWS);
  print(`sending changes to ${SUBSCRIBERS} subscribers, with a policy that hides rows from some`);
  const results: Record<number, object> = {};
  for (const callers of CALLERS) {
    const server = await startOurs(scratch, scratch.url("authenticator"));
    const before = await residentMebibytes(server.pid);
    const subscribers = new Subscribers();
    try {
      await subscribers.join(server.base, callers);
      const joined = await residentMebibytes(server.pid);
      const { rate, nodeMicroseconds, postgresMicroseconds } = await throughput(scratch, subscribers, {
        pid: server.pid,
        seconds: rounds * seconds,
      });
      const delays = await latencies(scratch, subscribers);
      const idle = await idleMilliseconds(server.pid, seconds);
      const kibibytes = before === null || joined === null ? null : ((joined - before) * 1024) / SUBSCRIBERS;
      print(
        `  ${String(callers).padStart(5)} callers: ${Math.round(rate)} messages/s (each: service ${nodeMicroseconds?.toFixed(1)} µs, Postgres ${postgresMicroseconds?.toFixed(1)} µs), to all p50 ${delays.p50.toFixed(1)} ms, p99 ${delays.p99.toFixed(1)} ms, idle ${idle?.toFixed(1)} ms/s, ${kibibytes?.toFixed(0)} KiB each`,
      );
      results[callers] = {
        messagesPerSecond: rate,
        nodeMicroseconds,
        postgresMicroseconds,
        ...delays,
        idleMilliseconds: idle,
        kibibytesEach: kibibytes,
      };
    } finally {
      subscribers.close();
      await server.stop();
    }
  }
  return results;
}

type Load = { readonly pid: number; readonly seconds: number };

/** Measures the throughput. Writers stay two transactions ahead of the subscribers, so that neither waits for the other. */
async function throughput(scratch: Scratch, subscribers: Subscribers, { pid, seconds }: Load) {
  await scratch.execute(INSERT);
  await subscribers.until(CHANGES);
  subscribers.reset();
  const [node, postgres] = [await processorTimeOf(pid), await scratch.processorTime()];
  const startedAt = performance.now();
  let told = 0;
  for (let inserted = 0; performance.now() - startedAt < seconds * 1000; told = inserted - 2 * CHANGES) {
    await scratch.execute(INSERT);
    inserted += CHANGES;
    await subscribers.until(inserted - 2 * CHANGES);
  }
  const messages = told * SUBSCRIBERS;
  const each = (before: number | null, after: number | null) =>
    before === null || after === null ? null : (after - before) / messages;
  return {
    rate: messages / ((performance.now() - startedAt) / 1000),
    nodeMicroseconds: each(node, await processorTimeOf(pid)),
    postgresMicroseconds: each(postgres, await scratch.processorTime()),
  };
}

/** Measures the time from a single change to each subscriber. */
async function latencies(scratch: Scratch, subscribers: Subscribers): Promise<{ p50: number; p99: number }> {
  await sleep(500);
  const delays: number[] = [];
  for (let insert = 0; insert < INSERTS_FOR_LATENCY; insert++) {
    subscribers.reset();
    const startedAt = performance.now();
    await scratch.execute("insert into news (title) values ('One')");
    await subscribers.until(1);
    delays.push(...subscribers.arrivals.map((time) => time - startedAt));
  }
  return percentilesOf(delays);
}

async function idleMilliseconds(pid: number, seconds: number): Promise<number | null> {
  const before = await processorTimeOf(pid);
  await sleep(seconds * 3_000);
  const after = await processorTimeOf(pid);
  return before === null || after === null ? null : (after - before) / 1000 / (seconds * 3);
}

/** Minimal clients that count the changes they receive. */
class Subscribers {
  readonly #sockets: WebSocket[] = [];
  #counts: number[] = [];
  arrivals: number[] = [];
  #waiting: { readonly count: number; readonly resolve: () => void; left: number } | null = null;

  async join(base: URL, callers: number): Promise<void> {
    while (this.#sockets.length < SUBSCRIBERS) {
      const first = this.#sockets.length;
      const joining = Array.from({ length: TOGETHER }, (_, at) => joinNews(base, (first + at) % callers));
      this.#sockets.push(...(await Promise.all(joining)));
    }
    this.#sockets.forEach((socket, number) => {
      socket.on("message", (data: Buffer) => data.includes('"postgres_changes"') && this.#arrived(number));
    });
    this.reset();
  }

  reset(): void {
    this.#counts = this.#sockets.map(() => 0);
    this.arrivals = [];
  }

  /** Resolves when each client has received this many changes. */
  until(count: number): Promise<void> {
    const left = this.#counts.filter((each) => each < count).length;
    if (left === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting = { count, resolve, left };
    });
  }

  close(): void {
    for (const socket of this.#sockets) socket.terminate();
  }

  #arrived(number: number): void {
    const count = ++this.#counts[number]!;
    if (count === 1) this.arrivals.push(performance.now());
    if (this.#waiting?.count === count && --this.#waiting.left === 0) this.#waiting.resolve();
  }
}

// Benchmarks live queries, over REST and GraphQL, and shapes of distinct callers under a policy: from an update to the client with its row.

import { mkdtempDisposable } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { startOurs } from "./comparison/ours.ts";
import { verdict } from "./comparison/targets.ts";
import { LiveClients } from "./live/live-clients.ts";
import { LIVE_KINDS, type LiveKind } from "./live/live-kinds.ts";
import type { Bench } from "./measuring/kind.ts";
import { percentilesOf } from "./measuring/percentile.ts";
import { residentMebibytes } from "./measuring/resident-memory.ts";
import { ROLES_WITH_CLAIMS } from "./measuring/schema.ts";
import { type Scratch, startScratch } from "./measuring/scratch.ts";

const ROWS_OF_LIST = 10;
const CHANGES_PER_SECOND = 500;
const TARGET = { p50: 10, p99: 50, changesPerSecond: 6_000 };
const WRITERS = 8;
/** The first half second after thousands of clients have connected is slow. In a shorter run it would decide the 99th percentile. */
const LEAST_SECONDS_OF_DELAYS = 15;
/** The number of clients before the memory measurement: their memory includes the service's shared memory. */
const FIRST_CLIENTS = 50;
/** The maximum time until all clients are up to date. */
const LONGEST_WAIT_MS = 60_000;

const schemaFor = (clients: number) => `${ROLES_WITH_CLAIMS}
  create table lists (id int primary key, owner text not null, name text not null);
  create table tasks (list int references lists, id int, title text not null, primary key (list, id));
  alter table lists enable row level security;
  alter table tasks enable row level security;
  create policy own on lists for select using (owner = (select auth.jwt() ->> 'sub'));
  create policy of_list on tasks for select using (exists (select from lists l where l.id = list));
  grant select on lists, tasks to authenticated;
  insert into lists select n, n::text, 'List ' || n from generate_series(0, ${clients - 1}) n;
  insert into tasks select l.id, n, '-' from lists l, generate_series(1, ${ROWS_OF_LIST}) n;
  create publication supabase_realtime for table lists, tasks`;

const UPDATE = "update tasks set title = $1 where list = $2 and id = 1";

export const bench: Bench = async ({ rounds, seconds, clients, only, print }) => {
  await using scratch = await startScratch(schemaFor(clients));
  await using folder = await mkdtempDisposable(join(tmpdir(), "content-service-bench-"));
  const results: Record<string, object> = {};
  for (const [name, kind] of Object.entries(LIVE_KINDS)) {
    if (only.length > 0 && !only.includes(name)) continue;
    results[name] = await measureKind(kind, {
      scratch,
      folder: folder.path,
      seconds: rounds * seconds,
      count: clients,
      print,
    });
  }
  return results;
};

type Measurement = {
  readonly scratch: Scratch;
  /** The folder for the logs of shapes. */
  readonly folder: string;
  readonly seconds: number;
  readonly count: number;
  readonly print: (line: string) => void;
};

async function measureKind({ title, streamOf }: LiveKind, { scratch, folder, seconds, count, print }: Measurement) {
  const server = await startOurs(scratch, scratch.url("authenticator"), { env: { DATA_DIR: folder } });
  const clients = new LiveClients();
  const writers = new pg.Pool({ connectionString: scratch.url("postgres"), max: WRITERS });
  try {
    await clients.join(server.base, FIRST_CLIENTS, streamOf);
    const before = await residentMebibytes(server.pid);
    await clients.join(server.base, count, streamOf);
    const after = await residentMebibytes(server.pid);
    const kibibytesEach =
      before === null || after === null ? null : ((after - before) * 1024) / (count - FIRST_CLIENTS);
    print(`live: ${count} ${title}, of ${count} callers under a policy that reads another table`);
    print(`  memory: ${kibibytesEach?.toFixed(0)} KiB each`);
    const arrivals = new Arrivals(clients, count);
    const secondsOfDelays = Math.max(LEAST_SECONDS_OF_DELAYS, seconds);
    const { p50, p99, committed } = await measureDelays(arrivals, writers, secondsOfDelays);
    print(
      `  ${CHANGES_PER_SECOND} changes/s for ${secondsOfDelays} s, update to client: p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`,
    );
    print(
      `    of it, until the commit was confirmed: p50 ${committed.p50.toFixed(1)} ms, p99 ${committed.p99.toFixed(1)} ms`,
    );
    const changesPerSecond = await measureRate(arrivals, writers, seconds);
    print(`  sustained for ${seconds} s: ${Math.round(changesPerSecond)} changes/s`);
    const { p50: mostP50, p99: mostP99, changesPerSecond: leastChanges } = TARGET;
    print(verdict(`p50: ${p50.toFixed(1)} ms`, p50 <= mostP50, `${mostP50} ms`));
    print(verdict(`p99: ${p99.toFixed(1)} ms`, p99 <= mostP99, `${mostP99} ms`));
    const rate = `sustained: ${Math.round(changesPerSecond)} changes/s`;
    print(verdict(rate, changesPerSecond >= leastChanges, String(leastChanges)));
    return { clients: count, kibibytesEach, p50, p99, committed, changesPerSecond };
  } finally {
    clients.close();
    await writers.end();
    await server.stop();
  }
}

/** Measures the time from the start of each update to the arrival of its value, or of a later one. */
async function measureDelays(arrivals: Arrivals, writers: pg.Pool, seconds: number) {
  const startedAt = performance.now();
  const total = CHANGES_PER_SECOND * seconds;
  for (let written = 0; written < total; ) {
    const due = Math.min(total, ((performance.now() - startedAt) / 1_000) * CHANGES_PER_SECOND);
    for (; written < due; written++) void arrivals.write(writers);
    await sleep(2);
  }
  await arrivals.settled();
  return { ...percentilesOf(arrivals.delays), committed: percentilesOf(arrivals.commits) };
}

/** Measures the rate of changes until all clients have the last value of their rows. */
async function measureRate(arrivals: Arrivals, writers: pg.Pool, seconds: number): Promise<number> {
  const startedAt = performance.now();
  let written = 0;
  await Promise.all(
    Array.from({ length: WRITERS }, async () => {
      while (performance.now() - startedAt < seconds * 1_000) {
        written++;
        await arrivals.write(writers);
      }
    }),
  );
  await arrivals.settled();
  return written / ((performance.now() - startedAt) / 1_000);
}

/** The values that were written to the row of each client, and have not arrived. */
class Arrivals {
  readonly delays: number[] = [];
  /** The durations of the updates themselves. */
  readonly commits: number[] = [];
  readonly #waiting: readonly Map<number, number>[];
  #left = 0;
  /** The last number of all kinds, which share the rows: an update with the same value reaches no client. */
  static #lastNumber = 0;

  constructor(clients: LiveClients, count: number) {
    this.#waiting = Array.from({ length: count }, () => new Map());
    clients.onNumber = (number, client) => this.#arrived(number, client);
  }

  async write(writers: pg.Pool): Promise<void> {
    const number = ++Arrivals.#lastNumber;
    // Consecutive changes affect different results.
    const list = (number * 7_919) % this.#waiting.length;
    const startedAt = performance.now();
    this.#waiting[list]!.set(number, startedAt);
    this.#left++;
    await writers.query({ name: "update", text: UPDATE, values: [`n${number}`, list] });
    this.commits.push(performance.now() - startedAt);
  }

  async settled(): Promise<void> {
    const end = performance.now() + LONGEST_WAIT_MS;
    while (this.#left > 0) {
      if (performance.now() > end) throw new Error(`${this.#left} changes have not arrived`);
      await sleep(1);
    }
  }

  #arrived(number: number, client: number): void {
    for (const [earlier, startedAt] of this.#waiting[client]!) {
      if (earlier > number) break;
      this.#waiting[client]!.delete(earlier);
      this.delays.push(performance.now() - startedAt);
      this.#left--;
    }
  }
}

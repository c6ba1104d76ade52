// Benchmarks the change stream alone: the cost of reading the WAL, and the memory meanwhile.
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { type ChangeFollower, openReplication, type ReplicationStream } from "#live/stream";
import type { BenchOptions } from "../measuring/kind.ts";
import { median } from "../measuring/median.ts";
import { percentilesOf } from "../measuring/percentile.ts";
import { residentMebibytes } from "../measuring/resident-memory.ts";
import { type Scratch, startScratch } from "../measuring/scratch.ts";

const ROWS = 100_000;
const LATENCIES = 500;
const SCHEMA = `
  create table items (id int primary key, owner_id int, title text, note text, created_at timestamptz default now());
  alter table items replica identity full;
  create table unwanted (like items including all);
  alter table unwanted replica identity full;
  create publication bench for table items, unwanted`;
const INSERT = `select number, number % 100, 'Title ' || number, repeat('x', 60) from generate_series(1, ${ROWS}) as number`;

type Reading = {
  readonly changesPerSecond: number;
  readonly nodeMicroseconds: number;
  readonly postgresMicroseconds: number | null;
};

export async function benchDecoding({ rounds, seconds, print }: BenchOptions): Promise<object> {
  await using scratch = await startScratch(SCHEMA);
  const pool = new pg.Pool({ connectionString: scratch.url("postgres") });
  const changes = openReplication({
    url: scratch.url("postgres"),
    publication: "bench",
    log: console,
    asOwner: async (work) => {
      const client = await pool.connect();
      return work(client).finally(() => client.release());
    },
  });
  try {
    print(`reading the WAL: one transaction of ${ROWS} rows, medians of ${rounds}`);
    const wanted = await medians(rounds, () => read(scratch, changes, "items"));
    print(`  wanted     ${toldOf(wanted)}`);
    const unwanted = await medians(rounds, () => read(scratch, changes, "unwanted"));
    print(`  unwanted   ${toldOf(unwanted)}`);

    const latency = await latencies(scratch, changes);
    print(`  from before an insert to its change: p50 ${latency.p50.toFixed(2)} ms, p99 ${latency.p99.toFixed(2)} ms`);

    const grown = await growthOfSlowReading(scratch, changes);
    print(`  an update of ${ROWS} rows, read slowly: this process grows by ${grown.toFixed(0)} MiB`);

    const idle = await idleMilliseconds(changes, seconds);
    print(`  idle: ${idle.toFixed(2)} ms of processor time per second`);
    return { wanted, unwanted, latency, grownMebibytes: grown, idleMilliseconds: idle };
  } finally {
    await changes.close();
    await pool.end();
  }
}

/** Follows the stream until a message that comes after all rows. */
async function followUntilEnd(
  changes: ReplicationStream,
  follower: Partial<ChangeFollower>,
): Promise<{ ended: Promise<void> }> {
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const { from, close } = changes.follow({
    wants: ({ name }) => name === "items",
    change: () => {},
    message: () => {
      close();
      resolve();
    },
    gap: ({ reason }) => console.error(reason),
    ...follower,
  });
  await from;
  return { ended };
}

async function read(scratch: Scratch, changes: ReplicationStream, table: string): Promise<Reading> {
  await scratch.execute(`truncate ${table}`);
  let told = 0;
  const { ended } = await followUntilEnd(changes, {
    change: () => {
      told++;
    },
  });
  const [node, postgres] = [process.cpuUsage(), await scratch.processorTime()];
  await scratch.execute(`insert into ${table} (id, owner_id, title, note) ${INSERT}`);
  const postgresAfterInsert = await scratch.processorTime();
  const start = performance.now();
  await changes.emit("end", Buffer.alloc(0));
  await ended;
  const milliseconds = performance.now() - start;
  if (table === "items" && told < ROWS) throw new Error(`Of ${ROWS} changes ${told} were told`);
  const { user, system } = process.cpuUsage(node);
  const postgresEnd = await scratch.processorTime();
  const isKnown = postgres !== null && postgresAfterInsert !== null && postgresEnd !== null;
  return {
    changesPerSecond: (ROWS / milliseconds) * 1000,
    nodeMicroseconds: (user + system) / ROWS,
    postgresMicroseconds: isKnown ? (postgresEnd - postgresAfterInsert) / ROWS : null,
  };
}

async function latencies(scratch: Scratch, changes: ReplicationStream): Promise<{ p50: number; p99: number }> {
  await scratch.execute("truncate items");
  let heard = () => {};
  const { ended } = await followUntilEnd(changes, { change: () => heard() });
  const milliseconds: number[] = [];
  for (let id = 0; id < LATENCIES; id++) {
    const { promise, resolve } = Promise.withResolvers<void>();
    heard = resolve;
    const start = performance.now();
    await Promise.all([promise, scratch.execute(`insert into items (id) values (${id})`)]);
    milliseconds.push(performance.now() - start);
  }
  await changes.emit("end", Buffer.alloc(0));
  await ended;
  return percentilesOf(milliseconds);
}

async function growthOfSlowReading(scratch: Scratch, changes: ReplicationStream): Promise<number> {
  await scratch.execute(`truncate items; insert into items (id, owner_id, title, note) ${INSERT}`);
  let told = 0;
  let most = 0;
  const { ended } = await followUntilEnd(changes, {
    change: async () => {
      if (++told % 1_000 !== 0) return;
      await sleep(10);
      most = Math.max(most, (await residentMebibytes(process.pid)) ?? 0);
    },
  });
  const before = (await residentMebibytes(process.pid)) ?? 0;
  await scratch.execute("update items set title = title || '!'");
  await changes.emit("end", Buffer.alloc(0));
  await ended;
  return most - before;
}

async function idleMilliseconds(changes: ReplicationStream, seconds: number): Promise<number> {
  const { ended } = await followUntilEnd(changes, {});
  // The service acknowledges earlier changes to Postgres within a second.
  await sleep(1_500);
  const before = process.cpuUsage();
  await sleep(seconds * 1_000);
  const { user, system } = process.cpuUsage(before);
  await changes.emit("end", Buffer.alloc(0));
  await ended;
  return (user + system) / 1_000 / seconds;
}

async function medians(rounds: number, measure: () => Promise<Reading>): Promise<Reading> {
  const readings: Reading[] = [];
  for (let round = 0; round < rounds; round++) readings.push(await measure());
  const postgres = readings.map(({ postgresMicroseconds }) => postgresMicroseconds).filter((value) => value !== null);
  return {
    changesPerSecond: median(readings.map(({ changesPerSecond }) => changesPerSecond)),
    nodeMicroseconds: median(readings.map(({ nodeMicroseconds }) => nodeMicroseconds)),
    postgresMicroseconds: postgres.length > 0 ? median(postgres) : null,
  };
}

function toldOf({ changesPerSecond, nodeMicroseconds, postgresMicroseconds }: Reading): string {
  const postgres = postgresMicroseconds === null ? "" : `, Postgres ${postgresMicroseconds.toFixed(1)} µs`;
  return `${Math.round(changesPerSecond / 1_000)}k changes/s; per change Node ${nodeMicroseconds.toFixed(1)} µs${postgres}`;
}

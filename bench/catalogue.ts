// Benchmarks schemas of a thousand tables and more: the duration of a start, the memory, and the effect of DDL on callers.

import { setTimeout as sleep } from "node:timers/promises";
import { SCHEMAS, type SchemaName, type SchemaSize, schemaSql } from "./catalogue/schemas.ts";
import { type CatalogueService, startCatalogueService } from "./catalogue/service.ts";
import { INTERFACES, type InterfaceName, isVisibleIn } from "./catalogue/visibility.ts";
import { type LoadGenerator, type LoadResult, startLoadGenerator } from "./comparison/load.ts";
import { API_KEY, TOKENS } from "./comparison/tokens.ts";
import type { Bench } from "./measuring/kind.ts";
import { median } from "./measuring/median.ts";
import { SCHEMA } from "./measuring/schema.ts";
import { type Scratch, startScratch } from "./measuring/scratch.ts";

const CONNECTIONS = 4;
const TARGET_PATH = "/rest/v1/items?id=eq.1000&select=id,title";
const BURST = { tables: 11, pauseMs: 2_000 };
/** The numbers of changes after which memory is compared: it only grows until the garbage of some builds has been collected. */
const CHANGES = { first: 10, last: 50 };

export const bench: Bench = async ({ only, print }) => {
  const names = only.length === 0 ? (["gitlab"] as const) : (only as readonly SchemaName[]);
  const results: Record<string, object> = {};
  for (const name of names) results[name] = await measure(name, SCHEMAS[name], print);
  return results;
};

async function measure(name: SchemaName, size: SchemaSize, print: (line: string) => void): Promise<object> {
  const { tables, columns, foreignKeys, roles } = size;
  print(`catalogue ${name}: ${tables} tables of ${columns} columns, ${foreignKeys} foreign keys, ${roles} roles`);
  await using opened = new AsyncDisposableStack();
  const scratch = opened.use(await startScratch(SCHEMA));
  for (const sql of schemaSql(size)) await scratch.execute(sql);
  await scratch.execute("vacuum analyze");
  const service = opened.use(await startCatalogueService(scratch));
  print(
    `  start: tables answered after ${text(service.seconds)}, GraphQL after ${text(await service.graphqlSeconds())}`,
  );
  const memory = { started: await service.resident(), used: 0, most: 0, after: 0 };

  using generator = startLoadGenerator();
  const calm = await readWhile(generator, service, sleep(3_000));
  print(`  at rest: ${describe(calm)}`);
  await Promise.all(INTERFACES.map((interfaceName) => isVisibleIn(interfaceName, service.url, "items")));
  memory.used = await service.resident();

  const seconds: Partial<Record<InterfaceName, number>> = {};
  const one = await readWhile(generator, service, createAndAwait(scratch, service, "brand_new_0", seconds));
  const times = INTERFACES.map((interfaceName) => `${interfaceName} ${text(seconds[interfaceName]!)}`);
  print(`  one new table: visible in ${times.join(", ")}; meanwhile ${describe(one)}`);

  const burst = createMany(scratch, service);
  const many = await readWhile(generator, service, burst);
  const burstSeconds = await burst;
  print(`  ${BURST.tables} new tables: the last in GraphQL after ${text(burstSeconds)}; meanwhile ${describe(many)}`);
  await sleep(3_000);
  memory.most = service.peak();
  memory.after = await service.resident();
  const mebibytes = Object.entries(memory).map(([when, held]) => `${when} ${held.toFixed(0)} MiB`);
  print(`  resident: ${mebibytes.join(", ")}`);
  const changes = await measureChanges(scratch, service);
  print(`  ${CHANGES.last} changes, each when the one before is visible: ${describeChanges(changes)}`);
  return { size, seconds, calm, one, many, burstSeconds, memory, changes };
}

type Changes = { readonly median: number; readonly longest: number; readonly resident: readonly number[] };

/** Measures the seconds until each change is visible in GraphQL, and the memory after the first changes and after all. */
async function measureChanges(scratch: Scratch, { url, resident }: CatalogueService): Promise<Changes> {
  const seconds: number[] = [];
  const residents: number[] = [];
  for (let number = 1; number <= CHANGES.last; number++) {
    await create(scratch, `changed_${number}`);
    const createdAt = performance.now();
    while (!(await isVisibleIn("/graphql", url, `changed_${number}`))) await sleep(25);
    seconds.push((performance.now() - createdAt) / 1_000);
    if (number === CHANGES.first || number === CHANGES.last) residents.push(await resident());
  }
  return { median: median(seconds), longest: Math.max(...seconds), resident: residents };
}

function describeChanges({ median, longest, resident: [first, last] }: Changes): string {
  const memory = `resident ${first!.toFixed(0)} MiB after ${CHANGES.first}, ${last!.toFixed(0)} MiB after all`;
  return `visible in GraphQL after ${text(median)} (median), ${text(longest)} at most; ${memory}`;
}

type Reads = { readonly requests: number; readonly p99: number; readonly longest: number; readonly hold: number };

/** Reads a table that does not change, until the promise settles. */
async function readWhile(generator: LoadGenerator, service: CatalogueService, until: Promise<unknown>): Promise<Reads> {
  const since = Date.now();
  let isOver = false;
  const over = until.finally(() => {
    isOver = true;
  });
  const rounds: LoadResult[] = [];
  do rounds.push(await generator.run(loadOf(service.url)));
  while (!isOver);
  await over;
  const most = (what: "p99" | "longest") => Math.max(...rounds.map((round) => round[what]));
  const requests = rounds.reduce((sum, round) => sum + round.requests, 0);
  return { requests, p99: most("p99"), longest: most("longest"), hold: await service.longestHold(since) };
}

function loadOf(url: string) {
  const { port, host } = new URL(url);
  const head = `GET ${TARGET_PATH} HTTP/1.1\r\nHost: ${host}\r\napikey: ${API_KEY}\r\nAuthorization: Bearer `;
  const request = ["", head, "\r\n\r\n"] as const;
  return { port: Number(port), connections: CONNECTIONS, seconds: 1, request, tokens: TOKENS.cached, values: null };
}

async function createAndAwait(
  scratch: Scratch,
  { url }: CatalogueService,
  table: string,
  seconds: Partial<Record<InterfaceName, number>>,
): Promise<void> {
  await create(scratch, table);
  const createdAt = performance.now();
  await Promise.all(
    INTERFACES.map(async (interfaceName) => {
      while (!(await isVisibleIn(interfaceName, url, table))) await sleep(25);
      seconds[interfaceName] = (performance.now() - createdAt) / 1_000;
    }),
  );
}

/** Resolves to the seconds until the last table is visible in GraphQL. */
async function createMany(scratch: Scratch, { url }: CatalogueService): Promise<number> {
  for (let number = 1; number <= BURST.tables; number++) {
    if (number > 1) await sleep(BURST.pauseMs);
    await create(scratch, `brand_new_${number}`);
  }
  const createdAt = performance.now();
  while (!(await isVisibleIn("/graphql", url, `brand_new_${BURST.tables}`))) await sleep(25);
  return (performance.now() - createdAt) / 1_000;
}

async function create(scratch: Scratch, table: string): Promise<void> {
  await scratch.execute(`create table ${table} (id int primary key); grant select on ${table} to authenticated, anon;
    notify pgrst, 'reload schema'`);
}

function describe({ requests, p99, longest, hold }: Reads): string {
  return `${requests} reads, worst second's p99 ${p99.toFixed(0)} ms, longest ${longest.toFixed(0)} ms, event loop held for ${hold.toFixed(0)} ms at most`;
}

function text(seconds: number): string {
  return `${seconds.toFixed(1)} s`;
}

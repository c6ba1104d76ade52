// Many tables and many roles: how long a start takes, and what those who ask notice while the schema is read again.

import { setTimeout as sleep } from "node:timers/promises";
import type { Bench } from "./bench.ts";
import { type Load, type LoadResult, startLoadGenerator } from "./contest/load.ts";
import { startOurs } from "./contest/ours.ts";
import { API_KEY, TOKENS } from "./contest/tokens.ts";
import { processorTimeOf } from "./processor-time.ts";
import { residentMebibytes } from "./resident-memory.ts";
import { SCHEMA } from "./schema.ts";
import { type Scratch, startScratch } from "./scratch.ts";

const AT_ONCE = 500;
const CONNECTIONS = 8;
const TARGET_PATH = "items?id=eq.1000&select=id,title";

export const bench: Bench = async ({ size, seconds, tell }) => {
  tell(`catalogue: ${size.toLocaleString("en")} tables with policies, and as many roles`);
  await using opened = new AsyncDisposableStack();
  const scratch = opened.use(await startScratch(SCHEMA));
  const makeSeconds = await timed(() => fill(scratch, size));
  tell(`  made in ${makeSeconds.toFixed(1)} s`);

  const startedAt = performance.now();
  const ours = opened.adopt(await startOurs(scratch, scratch.url("authenticator")), (program) => program.stop());
  const startSeconds = (performance.now() - startedAt) / 1000;
  const mebibytes = await residentMebibytes(ours.pid);
  const processorSeconds = ((await processorTimeOf(ours.pid)) ?? Number.NaN) / 1e6;
  tell(
    `  start: answering after ${startSeconds.toFixed(1)} s (${processorSeconds.toFixed(1)} s of the processor), resident ${mebibytes?.toFixed(0)} MiB`,
  );

  using generator = startLoadGenerator();
  const load = (duration: number): Load => ({
    port: Number(ours.base.port),
    connections: CONNECTIONS,
    seconds: duration,
    request: requestFor(ours.base),
    tokens: TOKENS.cached,
    values: null,
  });
  const read = async (isServed: () => Promise<boolean>) => {
    const changedAt = performance.now();
    let seconds: number | null = null;
    const waiting = until(isServed).then(() => (seconds = (performance.now() - changedAt) / 1000));
    const rounds: LoadResult[] = [];
    while (seconds === null) rounds.push(await generator.run(load(1)));
    return { seconds: await waiting, p99: Math.max(...rounds.map((round) => round.p99)), slowest: slowestOf(rounds) };
  };
  const build = await read(async () => !(await isBeingBuilt(ours.base)));
  if (build.seconds > 1) {
    tell(`  and at /graphql after another ${build.seconds.toFixed(1)} s; ${describeReload(build)}`);
  }
  await generator.run(load(3));
  const calm = await generator.run(load(Math.max(3, seconds)));
  tell(`  at rest: ${describe(calm)}`);

  const hasGraphQL = (await graphql(ours.base, "{ __typename }")).status === 200;
  if (!hasGraphQL) tell("  GraphQL is not served: its schema cannot be made of so much");
  await scratch.execute(NEW_TABLE);
  const tables = await read(() => isServedAsTable(ours.base));
  tell(`  a new table at /rest/v1 after ${tables.seconds.toFixed(1)} s, none failed; ${describeReload(tables)}`);
  const types = hasGraphQL ? await read(() => isServedAsType(ours.base)) : null;
  if (types) tell(`  and at /graphql ${types.seconds.toFixed(1)} s later; ${describeReload(types)}`);
  return { size, makeSeconds, startSeconds, processorSeconds, mebibytes, build, calm, tables, types };
};

const NEW_TABLE = `create table brand_new (id int primary key); grant select on brand_new to authenticated, anon;
  notify pgrst, 'reload schema'`;

/** A start does not wait long for GraphQL. */
async function isBeingBuilt(base: URL): Promise<boolean> {
  return (await (await fetch(new URL("/health", base))).text()).includes("being built");
}

async function isServedAsTable(base: URL): Promise<boolean> {
  return (await fetch(new URL("brand_new", base), { headers: { apikey: API_KEY } })).status === 200;
}

async function isServedAsType(base: URL): Promise<boolean> {
  return (await (await graphql(base, '{ __type(name: "BrandNew") { name } }')).text()).includes('"BrandNew"');
}

function graphql(base: URL, query: string): Promise<Response> {
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${TOKENS.cached[0]}` };
  return fetch(new URL("/graphql", base), { method: "POST", headers, body: JSON.stringify({ query }) });
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await sleep(50);
}

/** The fewest requests that were answered in a second: where one that is blocked answers none, no percentile tells. */
function slowestOf(rounds: readonly LoadResult[]): number {
  return Math.min(...rounds.map(({ requests, seconds }) => requests / seconds));
}

function describeReload({ p99, slowest }: { readonly p99: number; readonly slowest: number }): string {
  return `meanwhile p99 at most ${p99.toFixed(0)} ms, at least ${slowest.toFixed(0)} requests in each second`;
}

async function fill(scratch: Scratch, size: number): Promise<void> {
  for (let first = 1; first <= size; first += AT_ONCE) {
    const last = Math.min(size, first + AT_ONCE - 1);
    // As many at once as locks allow.
    await scratch.execute(`do $$ begin for n in ${first}..${last} loop
      execute format('create role role_%s', n);
      execute format('grant role_%s to authenticator', n);
      execute format('create table thing_%s (id bigint primary key, owner_id uuid not null, title text not null)', n);
      execute format('alter table thing_%s enable row level security', n);
      execute format('create policy own on thing_%s using (owner_id = (select auth.uid()))', n);
      execute format('grant select, insert, update, delete on thing_%s to authenticated, role_%s', n, n);
    end loop; end $$`);
  }
  await scratch.execute("vacuum analyze");
}

function requestFor(base: URL): Load["request"] {
  const head = `GET ${base.pathname}${TARGET_PATH} HTTP/1.1\r\nHost: ${base.host}\r\napikey: ${API_KEY}\r\nAuthorization: Bearer `;
  return ["", head, "\r\n\r\n"];
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return (performance.now() - startedAt) / 1000;
}

function describe({ requests, seconds, p50, p99 }: LoadResult): string {
  return `${Math.round(requests / seconds)} requests/s, p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`;
}

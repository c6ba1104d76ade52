import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import type { Caller } from "../../../accounts/identity/caller.ts";
import { type CacheRead, ResultCache } from "../../../live/cache/result-cache.ts";
import type { AsOwner } from "../../../postgres/database/owner-pool.ts";
import { NO_PEERS } from "../../../runtime/concurrency/peer-workers.ts";
import { openRealtimeFixture, type RealtimeFixture } from "../../realtime/service.ts";
import { until } from "../../until.ts";
import { followed } from "./cached-service.ts";

const SCHEMA = `
  create table public.topics (id int primary key, team text, title text);
  alter table public.topics enable row level security;
  create policy of_team on public.topics for select using (team = (select auth.jwt() ->> 'team'));
  grant select on public.topics to authenticated;
  insert into public.topics select n, 'red', 'title ' || n from generate_series(1, 40) n`;
const TEXT = "select id, title from public.topics where id = any($1::int[]) order by id";

let fixture: RealtimeFixture;
let relation: number;
let pool: pg.Pool;
let cache: ResultCache;
/** While definitions are not compared, and statements not run. */
let held = { owner: Promise.resolve(), runs: Promise.resolve() };
let counts = { owner: 0, runs: 0 };
let isOtherTimeline = false;

beforeAll(async () => {
  fixture = await openRealtimeFixture(SCHEMA);
  const { rows } = await fixture.owner.query("select 'public.topics'::regclass::oid::int as oid");
  relation = rows[0].oid;
});
afterAll(() => fixture.close());

beforeEach(async () => {
  pool = new pg.Pool({ connectionString: fixture.database.ownerUrl });
  const asOwner: AsOwner = async (work) => {
    counts.owner++;
    await held.owner;
    const client = await pool.connect();
    return work(client).finally(() => client.release());
  };
  const log = { info: () => {}, warn: () => {} };
  const { changes } = fixture.service;
  const options = { asOwner, changes, peers: NO_PEERS, publication: "supabase_realtime", maxBytes: 2 ** 24, log };
  // Filters of policies need no values here.
  cache = new ResultCache({ ...options, database: { run: () => Promise.reject(new Error("not run")) } as never });
  await until(async () => (await read([1])).outcome === "hit");
  counts = { owner: 0, runs: 0 };
});
afterEach(async () => {
  cache.close();
  await pool.end();
});

const callerOf = (session: string): Caller => {
  const claims = { role: "authenticated", team: "red", session };
  return { kind: "known", role: "authenticated", claims, claimsText: JSON.stringify(claims), expiresAt: null };
};

function read(ids: readonly number[], caller = callerOf("one")): Promise<CacheRead<string>> {
  const statement = { text: TEXT, values: [`{${ids}}`] };
  const run = async () => {
    const { rows } = await pool.query(
      "select pg_current_snapshot()::text as snapshot, (select coalesce(json_agg(t), '[]')::text from (select id, title from topics where id = any($1) order by id) t) as text",
      [ids],
    );
    return rows[0] as { readonly snapshot: string; readonly text: string };
  };
  return cache.read(
    {
      statement,
      context: { role: "authenticated", settings: [] },
      caller,
      shownRows: () => [
        {
          path: [],
          table: {
            ...{ relation, key: ["id"], isIndependent: true, comparisons: [], related: [] },
            members: new Map(["id", "title"].map((name) => [name, name])),
            page: { column: "id", isDescending: false, rows: ids.length, isReversed: false },
          },
        },
      ],
    },
    {
      run: async () => (await run()).text,
      runInSnapshot: async () => {
        counts.runs++;
        await held.runs;
        const { snapshot, text } = await run();
        const timeline = fixture.service.changes.state().history!.timeline + Number(isOtherTimeline);
        return { value: text, snapshot: { snapshot, timeline }, bytes: text.length, text };
      },
    },
  );
}

async function change(id: number): Promise<void> {
  await fixture.owner.query("update public.topics set title = title || '.' where id = $1", [id]);
  await followed(fixture.service, fixture.owner);
}

/** Returns what lets them go on. */
function hold(what: keyof typeof held): () => void {
  const { promise, resolve } = Promise.withResolvers<void>();
  held = { ...held, [what]: promise };
  return resolve;
}

/** Its next read fills the cache. */
async function readOnce(...all: Parameters<typeof read>[]): Promise<void> {
  for (const each of all) expect((await read(...each)).outcome).toBe("off");
}

test("a commit of another row, while definitions are compared, does not keep a result from the cache", async () => {
  await readOnce([[1, 2]]);
  const release = hold("owner");
  expect((await read([1, 2])).outcome).toBe("miss");
  await change(3);
  release();
  await until(() => cache.statistics().entries === 2);
  expect((await read([1, 2])).outcome).toBe("hit");
});

test("a commit of a row that is shown, while definitions are compared, does", async () => {
  await readOnce([[1, 2]]);
  const release = hold("owner");
  const { value } = await read([1, 2]);
  await change(2);
  release();
  await until(async () => (await read([1, 2])).outcome === "hit");
  expect((await read([1, 2])).value).not.toBe(value);
});

test("definitions are compared once for results that are read at the same time", async () => {
  const ids = Array.from({ length: 20 }, (_, index) => index + 2);
  await readOnce(...ids.map((id): [number[]] => [[id]]));
  counts.owner = 0;
  await Promise.all(ids.map((id) => read([id])));
  await until(() => cache.statistics().entries === 1 + ids.length);
  expect(counts.owner).toBeLessThan(ids.length / 2);
});

test("callers of one audience that read at the same time share a run, also with other tokens", async () => {
  await readOnce([[5]]);
  counts.runs = 0;
  const release = hold("runs");
  const reading = ["one", "two", "three", "one", "two"].map((session) => read([5], callerOf(session)));
  release();
  const read5 = await Promise.all(reading);
  expect(read5.map(({ outcome }) => outcome)).toEqual(["miss", "hit", "hit", "hit", "hit"]);
  expect(new Set(read5.map(({ value }) => value)).size).toBe(1);
  expect(counts.runs).toBe(1);
});

test("what a server of another timeline returns is not kept", async () => {
  await readOnce([[6]]);
  isOtherTimeline = true;
  for (let time = 0; time < 5; time++) expect((await read([6])).result).toBeNull();
  isOtherTimeline = false;
  await until(async () => (await read([6])).result !== null);
});

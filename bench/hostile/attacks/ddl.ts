// Changes the schema continuously: tables, columns, policies, functions and grants, each of which invalidates all earlier plans.

import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { ask } from "../ask.ts";
import { type Attack, Outcomes, repeat, type Target } from "../attack.ts";
import { credentials, HONEST_TOKEN } from "../callers.ts";

/** The pause results in about nine changes a second. */
const PAUSE_MS = 100;
const KEPT_TABLES = 10;
const SERVED_WITHIN_MS = 10_000;

/** The changes of each table, in turn. */
const CHANGES: readonly ((table: string) => string)[] = [
  (table) => `create table ${table} (id bigint primary key, note text)`,
  (table) => `grant select on ${table} to anon, authenticated`,
  (table) => `alter table ${table} add column added integer`,
  (table) => `alter table ${table} enable row level security; create policy all_rows on ${table} using (true)`,
  (table) => `create or replace function public.storm() returns text language sql as $$ select '${table}' $$`,
];

export const attack: Attack = async (target) => {
  const outcomes = new Outcomes();
  const owner = new pg.Client({ connectionString: target.ownerUrl });
  await owner.connect();
  const tables: string[] = [];
  let changes = 0;
  await repeat(target, { times: 1, pauseMs: PAUSE_MS }, async () => {
    const change = CHANGES[changes % CHANGES.length]!;
    if (changes++ % CHANGES.length === 0) tables.push(`public.storm_${tables.length}`);
    await owner.query(change(tables.at(-1)!));
    const old = tables.at(-KEPT_TABLES);
    if (old && changes % CHANGES.length === 0) await owner.query(`drop table ${old}`);
    outcomes.count("changed");
  });
  await owner.query(
    "create table public.storm_end (id bigint primary key); grant select on public.storm_end to anon, authenticated",
  );
  const after = await servedAfter(target, "storm_end");
  outcomes.state({
    what: `the last change is served after ${after === null ? "ever" : `${after.toFixed(0)} ms`}`,
    isMet: after !== null,
    target: `within ${SERVED_WITHIN_MS} ms`,
  });
  await owner.query(`
    do $$ declare name text; begin
      for name in select format('%I.%I', schemaname, tablename) from pg_tables where tablename like 'storm\\_%' loop
        execute 'drop table ' || name;
      end loop;
    end $$;
    drop function if exists public.storm()`);
  await owner.end();
  return outcomes.result;
};

/** Returns the milliseconds until the table is served; null if it takes too long. */
async function servedAfter({ url }: Target, table: string): Promise<number | null> {
  const since = performance.now();
  while (performance.now() - since < SERVED_WITHIN_MS) {
    const sent = ask(`${url}/rest/v1/${table}`, { headers: credentials(HONEST_TOKEN) });
    if ((await sent.catch(() => null))?.status === 200) return performance.now() - since;
    await sleep(PAUSE_MS);
  }
  return null;
}

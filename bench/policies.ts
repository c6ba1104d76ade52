// Measures policies over a million rows as they are often written, and in the form that `npm run doctor` gives.

import pg from "pg";
import { loadCatalog } from "#catalog/loading";
import { findSlowPolicy } from "#operations/doctor";
import type { Bench } from "./measuring/kind.ts";
import { median } from "./measuring/median.ts";
import { CALLER, SCHEMA } from "./measuring/schema.ts";
import { type Scratch, startScratch } from "./measuring/scratch.ts";

const ROWS = 1_000_000;
const TEAMS = 2_000;

const TASKS = `
  create table members (team_id int, user_id uuid, is_owner boolean, primary key (user_id, team_id));
  insert into members select 1 + n * 400, '${CALLER}', n < 2 from generate_series(0, 4) n;
  create table tasks (
    id bigint primary key, owner_id uuid not null, team_id int not null, title text not null,
    words tsvector generated always as (to_tsvector('simple', title)) stored
  );
  insert into tasks
    select n, owner_of(n), 1 + (n::bigint * 7919) % ${TEAMS}, 'task ' || md5(n::text) || case when n % 50 = 0 then ' urgent' else '' end
    from generate_series(1, ${ROWS}) n;
  create index on tasks (owner_id);
  create index on tasks (team_id);
  create index on tasks using gin (words);
  alter table tasks enable row level security;
  grant select on tasks, members to authenticated`;

const MEMBERSHIP = "select team_id from members where user_id =";

/** The policies as they are often written. */
const POLICIES: Readonly<Record<string, string>> = {
  "owner, asked per row": "owner_id = auth.uid()",
  "owner, asked once": "owner_id = (select auth.uid())",
  "team in a list": `team_id in (${MEMBERSHIP} (select auth.uid()))`,
  "team in a list, asked in it": `team_id in (${MEMBERSHIP} auth.uid())`,
  "owner, or team in a list": `owner_id = (select auth.uid()) or team_id in (${MEMBERSHIP} (select auth.uid()))`,
  "team in a list of owners": `team_id in (${MEMBERSHIP} (select auth.uid()) and is_owner)`,
};

const READS: Readonly<Record<string, string>> = {
  count: "select count(*) from tasks",
  "20 by id": "select * from tasks order by id limit 20",
  search: "select * from tasks where words @@ to_tsquery('simple', 'urgent') limit 20",
};

type Milliseconds = Readonly<Record<string, number>>;

export const bench: Bench = async ({ rounds, print }) => {
  print(
    `policies: ${ROWS.toLocaleString("en")} rows, of ${TEAMS} teams and 200 owners; the caller is in 5 teams; medians of ${rounds} runs`,
  );
  await using scratch = await startScratch(`${SCHEMA}; ${TASKS}`);
  const results = [];
  for (const [name, condition] of Object.entries(POLICIES)) {
    await scratch.execute(`create policy own on tasks for select to authenticated using (${condition})`);
    const before = await measureReads(scratch, rounds);
    const sql = await fasterPolicy(scratch);
    if (sql) await scratch.execute(sql);
    const after = sql ? await measureReads(scratch, rounds) : null;
    await scratch.execute("drop policy own on tasks");
    results.push({ policy: name, before, sql, after });
    print(`  ${name}: ${describe(before)}`);
    print(sql ? `    ${sql}\n    ${describe(after!)}` : "    doctor: fast");
  }
  return { results };
};

async function fasterPolicy(scratch: Scratch): Promise<string | null> {
  const client = new pg.Client({ connectionString: scratch.url("postgres") });
  await client.connect();
  const options = { schemas: ["public"], extraSearchPath: [], loginRole: "authenticator" };
  const { catalog } = await loadCatalog(client, options);
  await client.end();
  const table = catalog.findTable({ schema: "public", name: "tasks" })!;
  return findSlowPolicy(table.policies[0]!, table)?.sql ?? null;
}

async function measureReads(scratch: Scratch, rounds: number): Promise<Milliseconds> {
  const client = new pg.Client({ connectionString: scratch.url("authenticator") });
  await client.connect();
  const claims = JSON.stringify({ sub: CALLER });
  await client.query("select set_config('role', 'authenticated', false), set_config('request.jwt.claims', $1, false)", [
    claims,
  ]);
  const measured: Record<string, number> = {};
  for (const [name, text] of Object.entries(READS)) {
    const times: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const start = performance.now();
      await client.query(text);
      times.push(performance.now() - start);
    }
    measured[name] = median(times);
  }
  await client.end();
  return measured;
}

function describe(times: Milliseconds): string {
  return Object.entries(times)
    .map(([name, milliseconds]) => `${name} ${milliseconds.toFixed(1)} ms`)
    .join(", ");
}

import { describe, expect, test } from "vitest";
import { loadCatalog } from "../../../catalog/load-catalog.ts";
import { findSlowPolicy } from "../../../operations/doctor/faster-policies.ts";
import { useClient, useDatabase } from "../../database.ts";

const database = useDatabase({
  template: "platform",
  sql: `
    create table public.members (team int, person text, role text, region int);
    create table public."My notes" (id int primary key, team int, region int, author text, body text);
    grant select on public.members, public."My notes" to authenticated;
    alter table public."My notes" enable row level security;
    insert into public.members values (1, 'ann', 'owner', 1), (2, 'ann', 'guest', null), (null, 'ann', 'guest', 1), (2, 'bob', 'owner', 2), (null, 'cat', 'owner', 1);
    insert into public."My notes" select n, nullif(n % 4, 0), nullif(n % 3, 0), (array['ann', 'bob', 'cat'])[1 + n % 3], 'it''s a (note)'
      from generate_series(1, 40) as n;
    create function public.is_member(wanted int) returns boolean language sql stable
      as $$ select exists (select from public.members where team = wanted and person = auth.jwt() ->> 'sub') $$`,
});
const owner = useClient(database.ownerUrl);

const PERSON = "(auth.jwt() ->> 'sub')";
const SELECTED = "(select auth.jwt() ->> 'sub')";

async function readPolicy() {
  const options = { schemas: ["public"], extraSearchPath: [], loginRole: "authenticator" };
  const { catalog } = await loadCatalog(owner, options);
  const table = catalog.findTable({ schema: "public", name: "My notes" })!;
  return findSlowPolicy(table.policies[0]!, table);
}

async function visibleRows(): Promise<unknown> {
  const rows: unknown[] = [];
  for (const person of ["ann", "bob", "cat", "dan", null]) {
    await owner.query("begin");
    await owner.query("select set_config('role', 'authenticated', true), set_config('request.jwt.claims', $1, true)", [
      JSON.stringify(person === null ? {} : { sub: person }),
    ]);
    rows.push((await owner.query('select id from public."My notes" order by id')).rows);
    await owner.query("rollback");
  }
  return rows;
}

async function withPolicy(using: string, work: () => Promise<void>): Promise<void> {
  await owner.query(`create policy own on public."My notes" using (${using})`);
  try {
    await work();
  } finally {
    await owner.query('drop policy own on public."My notes"');
  }
}

describe("a policy that is slow for many rows", () => {
  test.each([
    ["asks who the caller is", `author = ${PERSON}`, "asksPerRow"],
    ["asks for a setting", "author = current_setting('request.jwt.claims', true)::json ->> 'sub'", "asksPerRow"],
    ["asks beside a text with brackets", `body like '%(note)' and author = ${PERSON}`, "asksPerRow"],
    [
      "compares with a list",
      `team in (select team from public.members where person = ${SELECTED})`,
      "comparesWithList",
    ],
    [
      "compares with two lists",
      `team in (select team from public.members where person = ${SELECTED})
        or region in (select region from public.members where person = ${SELECTED} and role = 'owner')`,
      "comparesWithList",
    ],
    [
      "compares with a list that asks in it, and asks beside it",
      `author = ${PERSON} or team in (select team from public.members where person = ${PERSON})`,
      "comparesWithList",
    ],
    [
      "compares an expression with a list",
      `coalesce(team, 1) in (select team from public.members where person = ${SELECTED} and team is not null)`,
      "comparesWithList",
    ],
  ] as const)("%s, and shows each caller the same rows in the fast form", async (_title, using, reason) => {
    await withPolicy(using, async () => {
      const slow = await readPolicy();
      expect(slow?.[reason]).toBe(true);
      const before = await visibleRows();
      await owner.query(slow!.sql!);
      expect(await visibleRows()).toEqual(before);
      expect(JSON.stringify(before)).toContain('"id":');
      expect(await readPolicy()).toBeNull();
    });
  });

  test("whose question depends on the row has to be written by hand", async () => {
    await withPolicy(`current_setting('app.' || author, true) = 'on'`, async () => {
      expect(await readPolicy()).toEqual({ asksPerRow: true, comparesWithList: false, sql: null });
    });
  });
});

test.each([
  `author = ${SELECTED}`,
  `team = any (array(select team from public.members where person = ${SELECTED}))`,
  `team in (select team from public.members where members.region = "My notes".region)`,
  `(team, region) in (select team, region from public.members where person = ${SELECTED})`,
  `team not in (select team from public.members where person = ${SELECTED})`,
  "body <> 'auth.uid() IN ( SELECT'",
  "public.is_member(team)",
])("a policy with %s is left as it is", async (using) => {
  await withPolicy(using, async () => expect(await readPolicy()).toBeNull());
});

test("the condition of a list serves as the condition of an index only in the fast form", async () => {
  await owner.query('create index notes_of_teams on public."My notes" (team)');
  await owner.query('set enable_seqscan = off; analyze public."My notes"');
  const planOf = async () => {
    await owner.query("begin");
    await owner.query("select set_config('role', 'authenticated', true), set_config('request.jwt.claims', '{}', true)");
    const { rows } = await owner.query('explain (costs off) select count(*) from public."My notes"');
    await owner.query("rollback");
    return rows.map((row) => row["QUERY PLAN"]).join("\n");
  };
  await withPolicy(`team in (select team from public.members where person = ${SELECTED})`, async () => {
    expect(await planOf()).not.toContain("Index Cond");
    await owner.query((await readPolicy())!.sql!);
    expect(await planOf()).toContain("Index Cond: (team = ANY");
  });
});

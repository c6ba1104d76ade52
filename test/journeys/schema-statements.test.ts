import { afterAll, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { openResources, type Sent } from "../rest-gateway/resource/open-resources.ts";
import { until } from "../until.ts";

const ROLE = `statement_reader_${process.pid}`;
const SCHEMA = `
  create schema elsewhere;
  grant usage on schema public to anon, authenticated;
  create type mood as enum ('CALM', 'SAD');
  create table notes (id int primary key, title text, mood mood default 'CALM');
  alter table notes enable row level security;
  create policy anybody_inserts on notes for insert with check (true);
  insert into notes values (1, 'one'), (2, 'two');
  create table events (id int primary key, title text) partition by range (id);
  create table mornings partition of events for values from (0) to (10);
  create table evenings partition of events for values from (10) to (20);
  insert into events values (1, 'one'), (11, 'eleven');
  grant select, insert on notes, events, mornings, evenings to anon, authenticated;
`;

const resources = useFixture(() =>
  openResources({ template: "empty", sql: SCHEMA, settings: { REST_REQUIRE_APIKEY: "false" } }),
);
afterAll(async () => {
  await resources.owner.query(`drop owned by ${ROLE}; drop role ${ROLE}`).catch(() => {});
});

type Query = { readonly table: string; readonly column?: string; readonly as?: Sent["as"] };

/** The ids of the rows on each interface; null where the caller may not read them, or there is no such table or column. */
async function read({ table, column = "title", as }: Query): Promise<readonly (readonly number[] | null)[]> {
  const sent = as === undefined ? {} : { as };
  const ids = (rows: readonly { id: number | string }[] | null | undefined) =>
    rows?.map(({ id }) => Number(id)).sort() ?? null;
  const rest = await resources.ask(`/rest/v1/${table}?select=id,${column}`, sent);
  const resource = await resources.ask(`/api/v1/${table}?fields=id,${column}`, sent);
  const query = `{ ${table} { edges { node { id ${column} } } } }`;
  const graphql = await resources.ask("/graphql", { ...sent, method: "POST", body: { query } });
  return [
    rest.status === 200 ? ids(rest.body) : null,
    resource.status === 200 ? ids(resource.body.data) : null,
    graphql.body.errors ? null : ids(graphql.body.data[table].edges.map(({ node }: { node: { id: string } }) => node)),
  ];
}

async function expectShown(query: Query, ids: readonly number[] | null): Promise<void> {
  await expect.poll(() => read(query)).toEqual([ids, ids, ids]);
}

const run = (sql: string) => resources.owner.query(sql);

test("each kind of DDL statement expectShown on the table interface, the resource interface and GraphQL", async () => {
  await expectShown({ table: "notes" }, []);
  await run("create policy everybody on notes for select using (true)");
  await expectShown({ table: "notes" }, [1, 2]);
  await run("alter policy everybody on notes using (id > 1)");
  await expectShown({ table: "notes" }, [2]);
  await run("alter policy everybody on notes to authenticated");
  await expectShown({ table: "notes" }, []);
  await expectShown({ table: "notes", as: 1 }, [2]);
  await run("drop policy everybody on notes");
  await expectShown({ table: "notes", as: 1 }, []);
  await run("alter table notes disable row level security");
  await expectShown({ table: "notes" }, [1, 2]);

  await run("revoke select on notes from anon");
  await expectShown({ table: "notes" }, null);
  await run("grant select (id) on notes to anon");
  await expectShown({ table: "notes", column: "id" }, [1, 2]);
  await expectShown({ table: "notes" }, null);
  await run("grant select on notes to anon");
  await expectShown({ table: "notes" }, [1, 2]);

  const as = { role: ROLE };
  await expectShown({ table: "notes", as }, null);
  await run(`create role ${ROLE}; grant ${ROLE} to authenticator`);
  await run(`grant authenticated to ${ROLE}`);
  await expectShown({ table: "notes", as }, [1, 2]);
  await run(`revoke authenticated from ${ROLE}`);
  await expectShown({ table: "notes", as }, null);

  await run("alter table notes rename column title to heading");
  await expectShown({ table: "notes", column: "heading" }, [1, 2]);
  await expectShown({ table: "notes" }, null);
  await run("alter table notes rename to papers");
  await expectShown({ table: "papers", column: "heading" }, [1, 2]);
  await expectShown({ table: "notes", column: "heading" }, null);
  await run("alter table papers set schema elsewhere");
  await expectShown({ table: "papers", column: "heading" }, null);
  await run("alter table elsewhere.papers set schema public");
  await expectShown({ table: "papers", column: "heading" }, [1, 2]);

  await expectShown({ table: "events" }, [1, 11]);
  await run("alter table events detach partition evenings concurrently");
  await expectShown({ table: "events" }, [1]);
  await expectShown({ table: "evenings" }, [11]);
  await run("alter table events attach partition evenings for values from (10) to (20)");
  await expectShown({ table: "events" }, [1, 11]);
  await run("drop table events");
  await expectShown({ table: "events" }, null);
});

test("a new value of an enum is accepted on all interfaces", async () => {
  const outcomes = async (ids: readonly number[]) => {
    const [rest, resource, graphql] = await Promise.all([
      resources.ask("/rest/v1/moods", { method: "POST", body: { id: ids[0], mood: "WILD" } }),
      resources.ask("/api/v1/moods", { method: "POST", body: { id: ids[1], mood: "WILD" } }),
      resources.ask("/graphql", {
        method: "POST",
        body: { query: `mutation { createMood(input: { id: ${ids[2]}, mood: WILD }) { mood } }` },
      }),
    ]);
    return [rest.status, resource.status, graphql.body.data?.createMood];
  };
  await run("create table moods (id int primary key, mood mood); grant select, insert on moods to anon");
  await expectShown({ table: "moods", column: "mood" }, []);
  expect(await outcomes([1, 2, 3])).toEqual([400, 400, undefined]);
  await run("alter type mood add value 'WILD'");
  let next = 4;
  await until(async () => {
    const found = await outcomes([next++, next++, next++]);
    return JSON.stringify(found) === JSON.stringify([201, 201, { mood: "WILD" }]);
  });
});

import { expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { propertyRuns } from "../../property-runs.ts";
import { anonKey, openRealtimeFixture, token } from "../../realtime/service.ts";
import { until } from "../../until.ts";
import { countRuns } from "../queries/count-runs.ts";
import { EventClient } from "../queries/event-client.ts";
import { makeRandom } from "../queries/random.ts";

const SCHEMA = `
  create table public.diaries (owner text, day int, body text, primary key (owner, day));
  create table public.memberships (person text, room int, primary key (person, room));
  create table public.letters (id int primary key, room int, body text);
  alter table public.diaries enable row level security;
  alter table public.memberships enable row level security;
  alter table public.letters enable row level security;
  create policy own on public.diaries for select using (owner = (select auth.jwt() ->> 'sub'));
  create policy own on public.memberships for select using (person = (select auth.jwt() ->> 'sub'));
  create policy of_members on public.letters for select
    using (room in (select m.room from public.memberships m where m.person = (select auth.jwt() ->> 'sub')));
  grant select on public.diaries, public.memberships, public.letters to authenticated;
  insert into public.letters select n, n % 5, 'letter ' || n from generate_series(1, 20) n`;
const PEOPLE = ["ann", "bob", "O'Neil"];
const PATHS = ["diaries?select=*&order=day", "letters?select=id,room&order=id", "memberships?select=room&order=room"];

const fixture = useFixture(() => openRealtimeFixture(SCHEMA, { ADMIN_PORT: "0" }));

const headersOf = (person: string) => ({
  apikey: anonKey,
  authorization: `Bearer ${token({ sub: person, role: "authenticated" })}`,
});
const urlOf = (path: string) => `${fixture.service.url}/rest/v1/${path}`;

async function openAll(person: string) {
  return Promise.all(
    PATHS.map(async (path) => ({ path, client: await EventClient.open(urlOf(path), headersOf(person)) })),
  );
}

test("changes of rows that the policies let nobody else read run no query of others", async () => {
  const { owner } = fixture;
  const clients = await openAll("ann");
  const before = await countRuns(fixture.service);
  for (let change = 0; change < 30; change++) {
    await owner.query(`begin;
      insert into public.memberships values ('bob', ${change}), ('Ann', ${change});
      update public.memberships set room = room + 100 where person = 'bob' and room = ${change};
      delete from public.memberships where person = 'Ann';
      insert into public.diaries values ('bob', ${change}, 'b'); commit`);
  }
  await owner.query("insert into public.diaries values ('ann', 1, 'a')");
  await clients[0]!.client.untilResult([{ owner: "ann", day: 1, body: "a" }]);
  // A transaction of another database that ran when the queries were opened may have them run once more.
  expect((await countRuns(fixture.service)) - before).toBeLessThanOrEqual(1 + PATHS.length);
  await owner.query("update public.memberships set person = 'ann' where person = 'bob' and room = 101");
  await owner.query("update public.memberships set room = 1 where person = 'ann'");
  await clients[1]!.client.untilResultIs((rows) => (rows as unknown[]).length === 4);
  await clients[2]!.client.untilResult([{ room: 1 }]);
  for (const { client } of clients) client.close();
});

test("after random changes each client has what its caller reads", async () => {
  const random = makeRandom(7);
  const { owner } = fixture;
  const clients = (
    await Promise.all(PEOPLE.map(async (person) => (await openAll(person)).map((each) => ({ ...each, person }))))
  ).flat();
  for (let step = 0; step < propertyRuns(150); step++) {
    const [person, other] = [PEOPLE[random(3)]!, PEOPLE[random(3)]!].map((name) => name.replaceAll("'", "''"));
    const statement = [
      `insert into public.memberships values ('${person}', ${random(5)}) on conflict do nothing`,
      `delete from public.memberships where person = '${person}' and room = ${random(5)}`,
      `update public.memberships set person = '${other}' where (person, room) = (
        select person, room from public.memberships m where person = '${person}' and not exists (
          select from public.memberships o where o.person = '${other}' and o.room = m.room) limit 1)`,
      `insert into public.diaries values ('${person}', ${random(9)}, 'b${step}') on conflict (owner, day) do update set body = excluded.body`,
      `update public.diaries set owner = '${other}', day = 100 + ${step} where owner = '${person}' and day = ${random(9)}`,
      `delete from public.diaries where owner = '${person}' and day > 50`,
      `update public.letters set room = ${random(5)} where id = ${1 + random(20)}`,
      ...(random(20) === 0 ? ["truncate public.memberships"] : ["delete from public.diaries where day = 3"]),
    ][random(8)]!;
    await owner.query(statement);
    await Promise.all(
      clients.map(async ({ path, client, person: reader }) => {
        const expected = JSON.stringify(await (await fetch(urlOf(path), { headers: headersOf(reader) })).json());
        await client.untilResultIs((result) => JSON.stringify(result) === expected);
      }),
    );
  }
  for (const { client } of clients) client.close();
});

test("a policy that changes its column is followed", async () => {
  const { owner } = fixture;
  await owner.query("truncate public.diaries");
  const client = await EventClient.open(urlOf("diaries?select=day&order=day"), headersOf("ann"));
  await owner.query(
    "drop policy own on public.diaries; create policy own on public.diaries for select using (body = auth.jwt() ->> 'sub')",
  );
  await owner.query("insert into public.diaries values ('bob', 1, 'ann')");
  await client.untilResult([{ day: 1 }]);
  await owner.query("insert into public.diaries values ('bob', 2, 'ann')");
  await client.untilResult([{ day: 1 }, { day: 2 }]);
  client.close();
});

test("a function that the caller may not name refuses no query whose policy calls it", async () => {
  const { owner } = fixture;
  await owner.query(`create schema hidden;
    create function hidden.person() returns text language sql stable return auth.jwt() ->> 'sub';
    grant execute on function hidden.person to authenticated;
    create table public.teams (id int primary key, person text);
    alter table public.teams enable row level security;
    create policy own on public.teams for select using (person = hidden.person());
    grant select on public.teams to authenticated`);
  const url = urlOf("teams?select=id");
  await untilServed(url);
  const client = await EventClient.open(url, headersOf("ann"));
  await owner.query("insert into public.teams values (1, 'ann')");
  await client.untilResult([{ id: 1 }]);
  client.close();
});

async function untilServed(url: string): Promise<void> {
  await until(async () => (await fetch(url, { headers: headersOf("ann") })).ok);
}

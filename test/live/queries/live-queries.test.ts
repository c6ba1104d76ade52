import pg from "pg";
import { expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { propertyRuns } from "../../property-runs.ts";
import { anonKey, openRealtimeFixture, token } from "../../realtime/service.ts";
import { serverBinaries } from "../../server-binaries.ts";
import { EventClient } from "./event-client.ts";
import { makeRandom } from "./random.ts";

const { major } = await serverBinaries();
const SCHEMA = `
  create table public.rooms (id int primary key, name text, is_open bool not null);
  create table public.guests (room int, person text, level int, primary key (room, person));
  create table public.letters (id int primary key, room int, author text, body text);
  create function public.level_in(wanted int) returns int language plpgsql stable security definer set search_path = ''
    as 'begin return (select level from public.guests where room = wanted and person = auth.jwt() ->> ''sub''); end';
  grant execute on function public.level_in to anon, authenticated;
  alter table public.rooms enable row level security;
  alter table public.letters enable row level security;
  alter table public.guests enable row level security;
  create policy of_guests on public.rooms for select using (is_open or public.level_in(id) > 0);
  create policy of_room on public.letters for select using (
    author = (select auth.jwt() ->> 'sub') or exists (select from public.rooms r where r.id = room));
  create policy own on public.guests for select using (person = auth.jwt() ->> 'sub');
  create view public.counted ${major < 15 ? "" : "with (security_invoker = true)"} as
    select r.name, count(l.id) as letters from public.rooms r left join public.letters l on l.room = r.id group by r.id, r.name;
  grant select on public.rooms, public.guests, public.letters, public.counted to anon, authenticated`;

const PATHS = [
  "letters?select=id,body,rooms(name)&order=id",
  "letters?select=id&room=eq.1&order=id.desc&limit=3",
  "letters?id=in.(1,2,3)&select=id,room,author&order=id",
  "rooms?select=id,name,letters(id)&letters.order=id&order=id",
  "counted?select=name,letters&order=name,letters",
  "guests?select=room,level&order=room",
];
const PEOPLE = ["ann", "bob", "cem"];
const RELATIONSHIP = "alter table public.letters add foreign key (room) references public.rooms on delete set null";

const fixture = useFixture(() => openRealtimeFixture(`${SCHEMA}; ${RELATIONSHIP}`));

function randomStatement(random: (below: number) => number): string {
  const [room, id, person] = [1 + random(4), 1 + random(12), PEOPLE[random(3)]];
  return [
    `insert into public.rooms values (${room}, 'r${random(9)}', ${random(2) === 0}) on conflict (id) do update set name = excluded.name, is_open = excluded.is_open`,
    `insert into public.letters values (${id}, (select id from public.rooms where id = ${room}), '${person}', 'b${random(99)}')
      on conflict (id) do update set room = excluded.room, body = excluded.body, author = excluded.author`,
    `insert into public.guests values (${room}, '${person}', ${random(3)}) on conflict (room, person) do update set level = excluded.level`,
    `delete from public.guests where person = '${person}' and room = ${room}`,
    `delete from public.letters where id = ${id}`,
    `delete from public.rooms where id = ${room}`,
    `update public.letters set id = id + 100 where id = ${id}`,
    `update public.letters set id = id - 100 where id = ${id + 100} and not exists (select from public.letters where id = ${id})`,
  ][random(8)]!;
}

const headersOf = (person: string) => ({
  apikey: anonKey,
  authorization: `Bearer ${token({ sub: person, role: "authenticated" })}`,
});

test("after random transactions each client has what its caller reads, and no event had anything else", async () => {
  const random = makeRandom(42);
  const { owner, service } = fixture;
  const urlOf = (path: string) => `${service.url}/rest/v1/${path}`;
  const readNow = async (path: string, person: string) =>
    JSON.stringify(await (await fetch(urlOf(path), { headers: headersOf(person) })).json());
  const shapes = PEOPLE.flatMap((person) => PATHS.map((path) => ({ person, path })));
  const clients = await Promise.all(
    shapes.map(async ({ person, path }) => {
      const [states, client] = [
        new Set([await readNow(path, person)]),
        await EventClient.open(urlOf(path), headersOf(person)),
      ];
      return { person, path, states, client };
    }),
  );
  for (let step = 0; step < propertyRuns(200); step++) {
    const statements = Array.from({ length: 1 + random(3) }, () => randomStatement(random));
    const isRolledBack = random(10) === 0;
    await owner
      .query(["begin", ...statements, isRolledBack ? "rollback" : "commit"].join("; "))
      .catch(async (error) => {
        if (!(error instanceof pg.DatabaseError)) throw error;
        await owner.query("rollback");
      });
    await Promise.all(
      clients.map(async ({ person, path, states, client }) => {
        const expected = await readNow(path, person);
        states.add(expected);
        await client.untilResultIs((result) => JSON.stringify(result) === expected);
      }),
    );
  }
  for (const { states, client, path, person } of clients) {
    const foreign = client.results.filter((result) => !states.has(result));
    expect({ path, person, foreign }).toEqual({ path, person, foreign: [] });
    client.close();
  }
  expect(clients.some(({ client }) => client.results.length > 10)).toBe(true);
});

test("while transactions follow each other, a client only gets states that a commit had", async () => {
  const { owner, service } = fixture;
  await owner.query(
    "delete from public.letters; insert into public.rooms values (1, 'r', true) on conflict (id) do update set is_open = true",
  );
  const client = await EventClient.open(`${service.url}/rest/v1/letters?select=id&order=id`, headersOf("ann"));
  // Each transaction moves a pair: no commit has one half.
  for (let pair = 0; pair < 60; pair++) {
    await owner.query(`begin; delete from public.letters where room = 1;
      insert into public.letters values (${pair}, 1, 'x', ''); insert into public.letters values (${pair + 1_000}, 1, 'x', ''); commit`);
  }
  await client.untilResult([{ id: 59 }, { id: 1_059 }]);
  const halves = client.results.filter((result) => {
    const ids = (JSON.parse(result) as { id: number }[]).map(({ id }) => id);
    return ids.length !== 0 && (ids.length !== 2 || ids[1] !== ids[0]! + 1_000);
  });
  expect(halves).toEqual([]);
  const firsts = client.results.slice(1).map((result) => (JSON.parse(result) as { id: number }[])[0]!.id);
  expect(firsts).toEqual([...firsts].sort((a, b) => a - b));
  client.close();
});

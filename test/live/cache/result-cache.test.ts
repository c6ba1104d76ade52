import { afterAll, beforeAll, expect, test } from "vitest";
import type { Service } from "../../../service/service.ts";
import { propertyRuns } from "../../property-runs.ts";
import { openRealtimeFixture, type RealtimeFixture } from "../../realtime/service.ts";
import { serve } from "../../serve.ts";
import { makeRandom } from "../queries/random.ts";
import { followed, headersOf, readFrom, warm } from "./cached-service.ts";

const SCHEMA = `
  create table public.rooms (id int primary key, name text, is_open bool not null);
  create table public.guests (room int, person text, level int, primary key (room, person));
  create table public.letters (id int primary key, room int references public.rooms on update cascade on delete set null, author text, body text);
  create table public.cards (id int primary key, room int references public.rooms on update cascade on delete set null, sender text, body text);
  create function public.level_in(wanted int) returns int language plpgsql stable security definer set search_path = ''
    as 'begin return (select level from public.guests where room = wanted and person = auth.jwt() ->> ''sub''); end';
  create function public.letters_of(wanted text) returns setof public.letters language sql stable
    begin atomic select * from public.letters where author = wanted order by id; end;
  alter table public.rooms enable row level security;
  alter table public.letters enable row level security;
  alter table public.guests enable row level security;
  alter table public.cards enable row level security;
  create policy sent on public.cards for select using (sender = (select auth.jwt() ->> 'sub'));
  create policy of_guests on public.rooms for select using (is_open or public.level_in(id) > 0);
  create policy of_room on public.letters for select using (
    author = (select auth.jwt() ->> 'sub') or exists (select from public.rooms r where r.id = room));
  create policy own on public.guests for select using (person = auth.jwt() ->> 'sub');
  create view public.counted with (security_invoker = true) as
    select r.name, count(l.id) as letters from public.rooms r left join public.letters l on l.room = r.id group by r.id, r.name;
  create view public.clock with (security_invoker = true) as select id, now() as at from public.rooms;
  create view public.dice with (security_invoker = true) as select id, random() as at from public.rooms;
  create view public.asked with (security_invoker = true) as select id, current_setting('request.headers') as at from public.rooms;
  create table public.offers (id int primary key, ends timestamptz);
  grant execute on all functions in schema public to anon, authenticated;
  grant select on all tables in schema public to anon, authenticated;
  grant all on public.rooms, public.guests, public.letters, public.cards to service_role`;

const PATHS = [
  "letters?select=id,body,rooms(name)&order=id",
  "letters?select=id&room=eq.1&order=id.desc&limit=3",
  "letters?id=eq.1",
  "letters?id=in.(1,2,3)&select=id,room,author&order=id",
  "rooms?select=id,name,letters(id)&letters.order=id&order=id",
  "letters?select=id,rooms(id,name)&order=id",
  "cards?select=id,body,room,rooms(name)&order=id",
  "cards?select=id,body,rooms(id,name)&id=gt.2&order=id&limit=3",
  "cards?select=id,room,rooms(id,name)&order=id.desc&limit=4",
  "cards?select=id,rooms!inner(id,name)&rooms.is_open=is.true&order=id",
  "cards?select=body,rooms(name)&id=in.(1,2,3,4)&order=id",
  "cards?select=id,room,rooms(id,name,letters(id))&rooms.letters.order=id&order=id",
  "counted?select=name,letters&order=name,letters",
  "guests?select=room,level&order=room",
  "rpc/letters_of?wanted=ann",
];
const PEOPLE = ["ann", "bob", "cem"];

let fixture: RealtimeFixture;
let url: string;
/** Without a cache. */
let plain: Service;

beforeAll(async () => {
  fixture = await openRealtimeFixture(SCHEMA, { CACHE: "true", SERVER_TIMING: "true" });
  url = fixture.service.url;
  plain = await serve(fixture.database);
  // From then on the service follows the changes.
  await warm(url, PATHS[0]!, headersOf("ann"));
});
afterAll(async () => {
  await plain.stop();
  await fixture.close();
});

function randomStatement(random: (below: number) => number): string {
  const [room, other, id, person] = [1 + random(4), 1 + random(6), 1 + random(12), PEOPLE[random(3)]];
  return [
    `insert into public.rooms values (${room}, 'r${random(9)}', ${random(2) === 0}) on conflict (id) do update set name = excluded.name, is_open = excluded.is_open`,
    `insert into public.letters values (${id}, (select id from public.rooms where id = ${room}), '${person}', 'b${random(99)}')
      on conflict (id) do update set room = excluded.room, body = excluded.body, author = excluded.author`,
    `insert into public.guests values (${room}, '${person}', ${random(3)}) on conflict (room, person) do update set level = excluded.level`,
    `delete from public.guests where person = '${person}' and room = ${room}`,
    `delete from public.letters where id = ${id}`,
    `delete from public.rooms where id = ${room}`,
    "truncate public.guests",
    `insert into public.cards values (${id}, (select id from public.rooms where id = ${room}), '${person}', 'c${random(99)}')
      on conflict (id) do update set room = excluded.room, body = excluded.body`,
    `update public.cards set room = (select id from public.rooms where id = ${other}) where room = ${room}`,
    `delete from public.cards where id = ${id}`,
    `update public.rooms set is_open = not is_open where id = ${room}`,
    `update public.rooms set name = 's${random(99)}' where id in (${room}, ${other})`,
    `update public.rooms r set id = ${other} where id = ${room} and not exists (select from public.rooms o where o.id = ${other})`,
  ][random(13)]!;
}

/** Its results can be kept with any of the definitions. */
const KEPT_PATH = "letters?id=eq.1";
const DEFINITIONS = [
  "drop policy of_room on public.letters; create policy of_room on public.letters for select using (author = auth.jwt() ->> 'sub')",
  "drop policy of_room on public.letters; create policy of_room on public.letters for select using (exists (select from public.rooms r where r.id = room))",
  "drop policy own on public.guests; create policy own on public.guests for select using (level > 0)",
  "drop policy own on public.guests; create policy own on public.guests for select using (person = auth.jwt() ->> 'sub')",
  "create or replace function public.level_in(wanted int) returns int language sql stable security definer set search_path = '' begin atomic select 1; end",
  `create or replace function public.level_in(wanted int) returns int language plpgsql stable security definer set search_path = ''
    as 'begin return (select level from public.guests where room = wanted and person = auth.jwt() ->> ''sub''); end'`,
  "revoke select on public.guests from authenticated",
  "grant select on public.guests to authenticated",
  "alter table public.rooms disable row level security",
  "alter table public.rooms enable row level security",
];

const randomShape = (random: (below: number) => number) => ({
  path: PATHS[random(PATHS.length)]!,
  person: PEOPLE[random(3)]!,
});

const serviceRole = headersOf("server", "service_role");

async function writeByUs(random: (below: number) => number): Promise<void> {
  const [room, id, person] = [1 + random(4), 1 + random(12), PEOPLE[random(3)]];
  const headers = { ...serviceRole, "content-type": "application/json", prefer: "resolution=merge-duplicates" };
  const post = (table: string, body: object) =>
    fetch(`${url}/rest/v1/${table}`, { method: "POST", headers, body: JSON.stringify(body) });
  const response = await [
    () => post("rooms", { id: room, name: `n${random(9)}`, is_open: random(2) === 0 }),
    () => post("letters", { id, room: null, author: person, body: `c${random(99)}` }),
    () => post("guests", { room, person, level: random(3) }),
    () => post("cards", { id, room: null, sender: person, body: `c${random(99)}` }),
    () => fetch(`${url}/rest/v1/letters?id=eq.${id}`, { method: "DELETE", headers }),
  ][random(5)]!();
  expect(response.status).toBeLessThan(300);
}

test("after random writes by the service and by others, what is cached is what each caller reads", async () => {
  const random = makeRandom(7);
  const { owner, service } = fixture;
  const counts = { hit: 0, miss: 0, off: 0, none: 0 };
  const steps = propertyRuns(150);
  const shapes = Array.from({ length: 6 }, () => randomShape(random));
  for (let step = 0; step < steps; step++) {
    const kept = { path: KEPT_PATH, person: PEOPLE[step % PEOPLE.length]! };
    await warm(url, kept.path, headersOf(kept.person));
    counts.hit++;
    const kind = random(10);
    if (kind < 5) await writeByUs(random);
    else {
      const definition = DEFINITIONS[random(DEFINITIONS.length)]!;
      await owner.query(kind === 5 ? definition : randomStatement(random));
      await followed(service, owner);
    }
    // Most were read before the write, too.
    shapes[step % shapes.length] = randomShape(random);
    const reads = [kept, ...shapes, ...shapes, ...shapes];
    await Promise.all(
      reads.map(async ({ path, person }) => {
        const cached = await readFrom(url, path, headersOf(person));
        const expected = await readFrom(plain.url, path, headersOf(person));
        expect({ step, path, person, status: cached.status, body: cached.body }).toEqual({
          ...{ step, path, person, status: expected.status, body: expected.body },
        });
        counts[(cached.cache ?? "none") as keyof typeof counts]++;
      }),
    );
  }
  expect(counts.hit).toBeGreaterThan(steps);
});

test.each([
  ["the time", "clock?select=id,at"],
  ["a volatile function", "dice?select=id,at"],
  ["the request", "asked?select=id,at"],
])("what depends on %s is not kept", async (_what, path) => {
  await fixture.owner.query(
    "insert into public.rooms values (1, 'open', true) on conflict (id) do update set is_open = true",
  );
  const read = () => readFrom(url, path, { ...headersOf("ann"), "x-request-id": crypto.randomUUID() });
  const seen = new Set<string>();
  for (let time = 0; time < 10; time++) {
    const { body, cache } = await read();
    expect(cache).toBe("off");
    seen.add(body);
  }
  expect(seen.size).toBe(10);
});

test.each(["gt.now", "gt.now()", "not.in.(yesterday,tomorrow)"])(
  "what %s returns changes with the time",
  async (filter) => {
    const { owner, service } = fixture;
    await owner.query("delete from public.offers; insert into public.offers values (1, now() + interval '3 seconds')");
    await followed(service, owner);
    const read = () => readFrom(url, `offers?select=id&ends=${filter}`, headersOf("ann"));
    for (let time = 0; time < 5; time++) expect((await read()).cache).toBe("off");
  },
);

test("an offer that has ended is not read from the cache", async () => {
  const { owner, service } = fixture;
  await owner.query("delete from public.offers; insert into public.offers values (1, now() + interval '3 seconds')");
  await followed(service, owner);
  const read = async () => (await readFrom(url, "offers?select=id&ends=gt.now", headersOf("ann"))).body;
  while ((await read()) !== "[]") await owner.query("select pg_sleep(0.2)");
  expect(await read()).toBe("[]");
});

test("a result is one for all callers with the same claims that policies read, and none for others", async () => {
  const { owner } = fixture;
  await owner.query(
    `${DEFINITIONS[0]}; delete from public.letters; insert into public.letters values (1, null, 'ann', 'for ann')`,
  );
  await followed(fixture.service, owner);
  const path = "letters?select=id,body";
  await warm(url, path, headersOf("ann"));
  expect(await readFrom(url, path, headersOf("ann"))).toMatchObject({
    cache: "hit",
    body: '[{"id":1,"body":"for ann"}]',
  });
  const other = { ...headersOf("bob") };
  expect((await readFrom(url, path, other)).body).toBe("[]");
});

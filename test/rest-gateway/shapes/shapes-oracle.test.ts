import { type Row, Shape, ShapeStream } from "@electric-sql/client";
import { expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { makeRandom } from "../../live/queries/random.ts";
import { propertyRuns } from "../../property-runs.ts";
import { openRealtimeFixture, token } from "../../realtime/service.ts";
import { until } from "../../until.ts";

const SCHEMA = `
  create table public.rooms (id int primary key, is_open bool not null);
  create table public.guests (room int, person text, level int, primary key (room, person));
  create table public.letters (id int primary key, room int, author text, body text, size numeric);
  create function public.level_in(wanted int) returns int language plpgsql stable security definer set search_path = ''
    as 'begin return (select level from public.guests where room = wanted and person = auth.jwt() ->> ''sub''); end';
  grant execute on function public.level_in to authenticated;
  alter table public.rooms enable row level security;
  alter table public.letters enable row level security;
  create policy of_guests on public.rooms for select using (is_open or public.level_in(id) > 0);
  create policy of_room on public.letters for select using (
    author = (select auth.jwt() ->> 'sub') or exists (select from public.rooms r where r.id = room));
  create policy up_to_size on public.letters as restrictive for select
    using (size <= coalesce((auth.jwt() ->> 'most')::numeric, 50));
  grant select on public.rooms, public.guests, public.letters to authenticated`;

const PEOPLE = ["ann", "bob", "cem"];
const WHERES = [
  "true",
  "room = 1",
  "room in (1, 2) and not (body like 'b1%')",
  "size between 10 and 60 or author is null",
  "author = any('{ann,bob}') and size > 12.5",
  "room <> 2 or room is null",
];

const fixture = useFixture(() => openRealtimeFixture(SCHEMA, { REST_REQUIRE_APIKEY: "false" }));

function randomStatement(random: (below: number) => number): string {
  const [room, id, person] = [1 + random(4), 1 + random(12), PEOPLE[random(3)]];
  return [
    `insert into public.rooms values (${room}, ${random(2) === 0}) on conflict (id) do update set is_open = excluded.is_open`,
    `insert into public.letters values (${id}, ${room}, '${person}', 'b${random(30)}', ${random(80)})
      on conflict (id) do update set (room, author, body, size) = (excluded.room, excluded.author, excluded.body, excluded.size)`,
    `update public.letters set size = size + ${random(9) - 4}, author = nullif(author, '${person}') where id <= ${id}`,
    `insert into public.guests values (${room}, '${person}', ${random(3)}) on conflict (room, person) do update set level = excluded.level`,
    `delete from public.guests where person = '${person}'`,
    `delete from public.letters where id = ${id}`,
    `delete from public.rooms where id = ${room}`,
    `update public.letters set id = id + 100 where id = ${id} and not exists (select from public.letters where id = ${id + 100})`,
    `drop policy of_room on public.letters; create policy of_room on public.letters for select using (
      room > ${random(3)} or author = (select auth.jwt() ->> 'sub') or exists (select from public.rooms r where r.id = room))`,
  ][random(random(8) === 0 ? 9 : 8)]!;
}

type Reader = { readonly person: string; readonly claims: string; readonly where: string };

/** The rows as that caller, each as JSON. */
async function readAs({ claims, where }: Reader): Promise<string[]> {
  const { owner } = fixture;
  await owner.query("begin");
  await owner.query("select set_config('role', 'authenticated', true), set_config('request.jwt.claims', $1, true)", [
    claims,
  ]);
  const { rows } = await owner.query(`select id, room, author, body, size::text from public.letters where ${where}`);
  await owner.query("rollback");
  return rows.map((row) => JSON.stringify(row));
}

function openReader(reader: Reader, signal: AbortSignal, liveSse: boolean) {
  const stream = new ShapeStream<Row>({
    url: `${fixture.service.url}/v1/shape`,
    params: { table: "letters", where: reader.where, replica: "full" },
    headers: { authorization: `Bearer ${token(JSON.parse(reader.claims))}` },
    liveSse,
    signal,
  });
  const received: string[] = [];
  stream.subscribe((messages) => {
    for (const message of messages)
      if ("key" in message && message.headers.operation !== "delete") received.push(JSON.stringify(message.value));
  });
  const shape = new Shape<Row>(stream as ConstructorParameters<typeof Shape<Row>>[0]);
  return {
    reader,
    received,
    has: (rows: readonly string[]) =>
      equal(
        shape.currentRows.map((row) => JSON.stringify(row)),
        rows,
      ),
  };
}

const equal = (one: readonly string[], other: readonly string[]) =>
  JSON.stringify(one.toSorted()) === JSON.stringify(other.toSorted());

test.each(Array.from({ length: propertyRuns(5) }, (_, seed) => seed + 1))(
  "after each commit a client has what its caller reads, and nothing else on the way (seed %i)",
  async (seed) => {
    const random = makeRandom(seed);
    const abort = new AbortController();
    const readers = Array.from({ length: 10 }, (_, number) => {
      const person = PEOPLE[random(3)]!;
      const claims = JSON.stringify({
        sub: person,
        role: "authenticated",
        most: 20 + 20 * random(4),
        // A client may join a shape that is kept for its caller, and gets its rows first: those of another seed would be strange.
        number: 10 * seed + (number % 7),
      });
      return openReader({ person, claims, where: WHERES[random(WHERES.length)]! }, abort.signal, random(3) === 0);
    });
    let changes = 0;
    for (let step = 0; step < 40; step++) {
      const statements = Array.from({ length: 1 + random(3) }, () => randomStatement(random));
      await fixture.owner.query(`begin; ${statements.join("; ")}; commit`);
      for (const { reader, received, has } of readers) {
        const rows = await readAs(reader);
        await until(() => has(rows));
        const hidden = received.filter((row) => !rows.includes(row));
        expect(hidden).toEqual([]);
        changes += received.splice(0).length;
      }
    }
    abort.abort();
    expect(changes).toBeGreaterThan(10);
    await fixture.owner.query("truncate public.letters, public.rooms, public.guests");
  },
);

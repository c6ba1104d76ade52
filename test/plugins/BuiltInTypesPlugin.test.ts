import { expect, test } from "vitest";
import { alice, anonymous } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

const generated = useGeneratedSchema({
  template: "empty",
  sql: `
    create table public.cities (code char(5) primary key, aliases char(3)[]);
    create table public.flights (id int primary key, city char(5) references public.cities, gate char(4));
    insert into public.cities values ('B', '{X}');
    insert into public.flights values (1, 'B', 'A1');
    grant all on all tables in schema public to authenticated;
    create table public.walls (id int generated always as identity primary key, way line, ways line[]);
    grant usage on schema public to anon;
    grant select, insert on public.walls to anon;
    create domain public.stay as daterange;
    create table public.rooms (id int primary key, taken daterange, stay public.stay, opened tstzrange, shut tsrange, all_taken daterange[]);
    create function public.never() returns setof daterange language sql as 'select null::daterange';
    grant select on public.rooms to anon;
    grant execute on function public.never to anon;
    insert into public.rooms (id) values (1);
    insert into public.rooms values (2, '(,)', '[2026-01-01,)', '(,)', '(,)', array['[2026-01-01,)', null]::daterange[]);`,
});

test("values of char(n) are the same in rows, in nested rows and in lists, with SQL's padding", async () => {
  const flight = "{ gate cityId city { code aliases } }";
  const result = { gate: "A1  ", cityId: "B    ", city: { code: "B    ", aliases: ["X  "] } };
  expect(await generated.read(alice, `{ flight(id: 1) ${flight} city(code: "B") { code flights ${flight} } }`)).toEqual(
    { flight: result, city: { code: "B    ", flights: [result] } },
  );
});

test("a value of char(n) is filtered and written with its padding or without", async () => {
  const input = '{ id: 2, city: "B", gate: "B22 " }';
  expect(
    await generated.read(
      alice,
      `mutation { createFlight(input: ${input}) { gate city { code } } updateFlight(id: 2, input: { gate: "C" }) { gate } }`,
    ),
  ).toEqual({ createFlight: { gate: "B22 ", city: { code: "B    " } }, updateFlight: { gate: "C   " } });
});

const point = (x: number, y: number) => ({ x, y });

test.each([
  ["lies level", point(0, 5), point(1, 5)],
  ["stands upright", point(5, 0), point(5, 1)],
  ["passes through the origin", point(1, 1), point(2, 2)],
  ["is slanted", point(0, 3), point(4, 0)],
  ["is the x axis", point(0, 0), point(1, 0)],
  ["is the y axis", point(0, 0), point(0, 1)],
])("a line that %s is returned as two points on it", async (_, a, b) => {
  const input = { way: { a, b }, ways: [{ a, b }] };
  const { createWall } = await generated.read(
    anonymous,
    `mutation ($input: CreateWallInput!) {
      createWall(input: $input) { id way { ...points } ways { ...points } }
    }
    fragment points on Line { a { x y } b { x y } }`,
    { input },
  );
  const result = createWall.way;
  expect(createWall.ways).toEqual([result]);
  const { rows } = await generated.owner.query(
    `select line(point($2, $3), point($4, $5)) = way as is_same from public.walls where id = $1`,
    [createWall.id, result.a.x, result.a.y, result.b.x, result.b.y],
  );
  expect(rows).toEqual([{ is_same: true }]);
});

const ROOM =
  "query ($id: ID!) { room(id: $id) { taken { ...days } stay { start { value } } opened { start { value } } shut { start { value } } allTaken { ...days } } } fragment days on DateRange { start { value } }";

test("a null range is null, and a range without bounds is not", async () => {
  const NONE = { taken: null, stay: null, opened: null, shut: null, allTaken: null };
  expect(await generated.read(anonymous, ROOM, { id: 1 })).toEqual({ room: NONE });
  const days = { start: { value: "2026-01-01" } };
  const endless = { start: null };
  expect(await generated.read(anonymous, ROOM, { id: 2 })).toEqual({
    room: { taken: endless, stay: days, opened: endless, shut: endless, allTaken: [days, null] },
  });
});

test("a function may return a null range", async () => {
  expect(await generated.read(anonymous, "mutation { never { start { value } } }")).toEqual({ never: [null] });
});

import { expect, test } from "vitest";
import { anonymous } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

const generated = useGeneratedSchema({
  template: "empty",
  sql: `
    create table public.walls (id int generated always as identity primary key, way line, ways line[]);
    grant usage on schema public to anon;
    grant select, insert on public.walls to anon;`,
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

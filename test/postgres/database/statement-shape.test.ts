import { describe, expect, test } from "vitest";
import { findNamedRelations, StatementShape, StatementShapes } from "../../../postgres/database/statement-shape.ts";

const ADA = { caller: "ada" };
const BOB = { caller: "bob" };

function shapeAfter(...runs: number[]): StatementShape {
  const shape = new StatementShape("select 1");
  for (const milliseconds of runs) shape.ran(milliseconds, ADA);
  return shape;
}

describe("a statement shape", () => {
  test.each([
    ["new", [], false],
    ["run twice", [1, 1], false],
    ["fast three times", [1, 1, 1], true],
    ["fast but once over 20 ms", [1, 1, 1, 21], false],
    ["fast again after it was slow", [1, 1, 1, 21, 1, 1, 1], true],
    ["fast for long and once over 20 ms", [...new Array(50).fill(1), 60], true],
    ["fast for long and over 20 ms three times", [...new Array(50).fill(1), 60, 60, 60], false],
    ["fast for long and then neither fast nor slow", [...new Array(70).fill(1), ...new Array(70).fill(10)], false],
    ["neither fast nor slow", [5, 5, 5, 5, 5, 5, 5, 5], false],
    ["slower on average than 3 ms", [1, 1, 1, ...new Array(20).fill(10)], false],
  ])("that is %s is fast: %s -> %s", (_what, runs, isFast) => {
    expect(shapeAfter(...(runs as number[])).isFast).toBe(isFast);
  });

  test("is slow for callers for whom most of its last runs were slow, and for no others", () => {
    const shape = shapeAfter(100);
    expect([shape.isLongFor(ADA), shape.isLongFor(BOB)]).toEqual([true, false]);
    shape.ran(1, BOB);
    expect(shape.isLongFor(ADA)).toBe(true);
    for (const isLong of [true, true, false]) {
      shape.ran(24, ADA);
      expect(shape.isLongFor(ADA)).toBe(isLong);
    }
    shape.ran(100, ADA);
    expect(shape.isLongFor(ADA)).toBe(true);
  });

  test("that was slow beside others of its kind stays slow while it takes a quarter of that alone", () => {
    const shape = shapeAfter(300);
    for (let run = 0; run < 20; run++) shape.ran(45, ADA);
    expect(shape.isLongFor(ADA)).toBe(true);
  });

  test.each([
    ["never fast", [40, 40, 40], false],
    ["fast before the machine was busy", [1, 1, 1, 60, 60], true],
    ["fast once, and slow since then", [1, 1, 1, ...new Array(10).fill(60)], false],
  ])("that was %s is known to be short: %s -> %s", (_what, runs, isShort) => {
    expect(shapeAfter(...(runs as number[])).isShort).toBe(isShort);
  });

  test("that is usually fast is slow for a caller after several slow runs", () => {
    const shape = shapeAfter(1, 1, 1);
    const isLongAfter = (milliseconds: number) => {
      shape.ran(milliseconds, ADA);
      return shape.isLongFor(ADA);
    };
    expect([100, 100, 100].map(isLongAfter)).toEqual([false, false, true]);
    expect([1, 1].map(isLongAfter)).toEqual([false, false]);
  });

  test("remembers a limited number of callers for whom it was slow", () => {
    const shape = shapeAfter();
    const callers = Array.from({ length: 1_000 }, (_, index) => String(index));
    for (const caller of callers) shape.ran(500, { caller });
    const remembered = callers.filter((caller) => shape.isLongFor({ caller }));
    expect(remembered.length).toBeGreaterThan(0);
    expect(remembered.length).toBeLessThanOrEqual(100);
  });

  test("has no zero byte in its text, which the server would take for the end", () => {
    expect(() => new StatementShape("select 1\0; drop table x")).toThrow(TypeError);
  });
});

describe("statement shapes", () => {
  test("are shared for the same text and role, and not with another role", () => {
    const shapes = new StatementShapes();
    const shape = shapes.shapeFor("anon", "select 1");
    expect(shapes.shapeFor("anon", "select 1")).toBe(shape);
    expect(shapes.shapeFor("admin", "select 1")).not.toBe(shape);
    expect(shapes.shapeFor("anon", "select 2")).not.toBe(shape);
  });

  test("are evicted if they are unused", () => {
    const shapes = new StatementShapes(10 * 1_024);
    const used = shapes.shapeFor("anon", "used");
    const unused = shapes.shapeFor("anon", "unused");
    for (let index = 0; index < 40; index++) {
      shapes.shapeFor("anon", `other ${index}`);
      expect(shapes.shapeFor("anon", "used")).toBe(used);
    }
    expect(shapes.shapeFor("anon", "unused")).not.toBe(unused);
  });
});

test.each([
  ['select * from "public"."items"', ['"public"."items"']],
  [
    "select * from public.items i join Public.Comments c on c.item_id = i.id",
    ['"public"."items"', '"public"."comments"'],
  ],
  ['select 1 from (select 1 from "a"."say ""hi""" as x) y', ['"a"."say ""hi"""']],
  ['insert into "public"."items" ("id") values ($1)', ['"public"."items"']],
  ['update only "public"."items" set "id" = $1', ['"public"."items"']],
  ['delete from "public"."items" where "items"."id" = $1', ['"public"."items"']],
  ['select * from "public"."search"($1)', ['"public"."search"']],
  ['select * from "public"."items", "page" join "page" on true', ['"public"."items"']],
  ["select * from pg_catalog.pg_class", []],
  ["select pg_backend_pid()", []],
])("%s names %j", (text, names) => {
  expect(findNamedRelations(text)).toEqual(names);
});

test("only some of very many relations are listed", () => {
  const joins = Array.from({ length: 100 }, (_, index) => `join a.t${index} on true`);
  expect(findNamedRelations(`select 1 from a.t ${joins.join(" ")}`)).toHaveLength(16);
});

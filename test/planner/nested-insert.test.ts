import pg from "pg";
import { describe, expect, test } from "vitest";
import type { InsertIntent } from "../../planner/intent/intent.ts";
import { explainNestedError, nestedPathOf } from "../../planner/nested-errors.ts";
import { makeRequestPlanner, type NestedStatements } from "../../planner/prepare.ts";
import type { JsonObject } from "../../runtime/json/json-values.ts";
import { JSON_FORMAT } from "./fixture-database.ts";
import { insert } from "./intents.ts";
import { catalog } from "./planner.ts";

const plan = makeRequestPlanner({
  aggregates: true,
  maxRows: null,
  safeWrites: true,
  legacyTargetNames: true,
  explainEnabled: true,
});

function planNested(table: string, rows: readonly JsonObject[], more: Partial<InsertIntent> = {}): NestedStatements {
  const intent = insert(table, [], {}, { returned: "nothing", nested: { rows, isList: true, columns: null }, ...more });
  const response = { formats: [JSON_FORMAT], includesBody: true, maxAffected: null };
  return plan(intent, response, catalog, "anon").nested!;
}

describe("the statements of a nested insert", () => {
  test("insert the rows that others refer to first, and those that refer to others last", () => {
    const { steps } = planNested("works", [
      {
        title: "Lilies",
        labels: { body: "In a pond" },
        artists: { id: 9, name: "Claude", countries: { code: "FR" } },
        exhibitions: [{ id: 9, title: "Water", exhibitions_curator_fkey: { id: 9, name: "Ada" } }],
        placements: { rooms: { floor: 3, number: 1 } },
      },
    ]);
    expect(steps.map(({ table }) => table.name)).toEqual([
      ...["countries", "artists", "works", "labels", "people", "exhibitions", "exhibits", "rooms", "placements"],
    ]);
  });

  test("have one text for all values and numbers of rows", () => {
    const [one, two] = [
      planNested("artists", [{ id: 1, name: "A", works: [{ title: "a" }] }]),
      planNested("artists", [
        { id: 2, name: "B", works: [] },
        { id: 3, name: "C", works: [{ title: "b" }, { title: "c" }] },
      ]),
    ];
    expect(two.statements.map(({ text }) => text)).toEqual(one.statements.map(({ text }) => text));
  });

  test("read and return only the keys that other rows refer to", () => {
    const { statements } = planNested("artists", [{ id: 1, name: "A", works: [{ title: "a" }] }]);
    expect(statements[0]!.text).toContain('returning "artists"."id"::pg_catalog.text');
    expect(statements[1]!.text).toMatch(/returning 1\) select/);
  });

  test("use the relations that the interface has looked up", () => {
    const works = catalog.findTable({ schema: "api", name: "works" })!;
    const relationship = catalog.relationshipsOf(works).find(({ target }) => target.name === "artists")!;
    const rows = [{ title: "a", "artist:1": { id: 1, name: "A" } }];
    const relations = new Map([["artist:1", relationship]]);
    const { steps } = planNested("works", rows, { nested: { rows, isList: true, columns: null, relations } });
    expect(steps.map(({ table }) => table.name)).toEqual(["artists", "works"]);
  });
});

describe("the path of an error of Postgres", () => {
  const works = [
    { title: "a", year: 1900, mood: "calm" },
    { title: "b", year: 1901, mood: "calm" },
    { title: "b", year: 1902, mood: "wild" },
  ];
  const { steps } = planNested("artists", [
    { id: 1, name: "A", works: works.slice(0, 2) },
    { id: 2, name: "B", works: works.slice(2) },
  ]);
  const pathOf = (fields: Partial<pg.DatabaseError>, failed: number | null = 1) => {
    const error = Object.assign(new pg.DatabaseError(fields.message ?? "", 0, "error"), fields);
    return nestedPathOf(explainNestedError(error, steps, failed));
  };

  test.each<[string, Partial<pg.DatabaseError>, string]>([
    ["a key", { code: "23505", detail: "Key (year)=(1901) already exists." }, "0/works/1/year"],
    [
      "a key in another language",
      { code: "23505", detail: "Schlüssel »(year)=(1902)« existiert bereits." },
      "1/works/0/year",
    ],
    ["a key of several columns", { code: "23505", detail: "Key (title, year)=(b, 1902) already exists." }, "1/works/0"],
    ["a key of several rows", { code: "23505", detail: "Key (title)=(b) already exists." }, "*/works/*/title"],
    [
      "a key that a trigger has changed",
      { code: "23505", detail: "Key (title)=(c) already exists." },
      "*/works/*/title",
    ],
    [
      "a failing row",
      { code: "23514", detail: "Failing row contains (7, 1, a, 1900, null, calm, f, {}, null)." },
      "0/works/0",
    ],
    [
      "some columns of it",
      { code: "23502", column: "price", detail: "Failing row contains (title, year) = (b, 1902)." },
      "1/works/0/price",
    ],
    ["a rejected value", { code: "22P02", message: 'invalid input value for enum api.mood: "wild"' }, "1/works/0/mood"],
    [
      "a rejected value of several rows",
      { code: "22P02", message: 'invalid input value for enum api.mood: "calm"' },
      "0/works/*/mood",
    ],
    ["nothing that the rows have", { code: "42501", message: "permission denied for table works" }, "*/works/*"],
  ])("that names %s", (_what, error, path) => {
    expect(pathOf(error)).toBe(path);
  });

  test("has no values of another table, which a trigger writes", () => {
    const detail = "Key (title)=(a) already exists.";
    const where = "PL/pgSQL function note_work() line 1 at SQL statement";
    expect(pathOf({ code: "23505", table: "notes", detail, where })).toBe("*/works/*");
  });

  test("is that of the statement that failed", () => {
    expect(pathOf({ code: "42501", message: "permission denied for table artists" }, 0)).toBe("*");
  });

  test("is found by the table if the commit failed, and is unknown for other tables", () => {
    const detail = "Key (year)=(1901) already exists.";
    expect(pathOf({ code: "23505", schema: "api", table: "works", detail }, null)).toBe("0/works/1/year");
    expect(pathOf({ code: "23505", schema: "api", table: "labels", detail }, null)).toBeNull();
  });
});

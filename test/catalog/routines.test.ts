import { beforeAll, describe, expect, test } from "vitest";
import type { Catalog } from "../../catalog/catalog.ts";
import { useFixture } from "../fixture.ts";
import { makeFixture, tableOf } from "./fixture.ts";

let catalog: Catalog;
const fixture = useFixture(makeFixture);
beforeAll(async () => {
  catalog = await fixture.load();
});

const overloads = (name: string, schema = "api") => catalog.schemas.get(schema)!.routines.get(name) ?? [];
const routine = (name: string) => overloads(name)[0]!;

describe("functions", () => {
  test("of exposed schemas are listed, except trigger functions and procedures", () => {
    expect(overloads("run")).toEqual([]);
    expect(catalog.schemas.get("extra")!.routines.size).toBe(0);
    expect(overloads("similarity", "Odd Schema")).toMatchObject([{ extension: "pg_trgm", language: "c" }]);
  });

  test("overloads are sorted by their number of arguments", () => {
    expect(overloads("add").map((each) => each.arguments.map(({ name }) => name))).toEqual([["a"], ["a", "b"]]);
  });

  test("arguments have their types, and defaults as SQL", () => {
    const add = overloads("add")[1]!;
    expect(add).toMatchObject({ volatility: "immutable", strict: true, language: "sql", securityDefiner: false });
    expect(add.arguments).toMatchObject([
      { name: "a", mode: "in", required: true, default: null, type: { sqlName: "integer" } },
      { name: "b", mode: "in", required: false, default: "(1 + 1)" },
    ]);
    expect(add.returns).toMatchObject({ shape: "scalar", set: false, type: { sqlName: "integer" } });
  });

  test("a variadic argument, and a set of a table's rows", () => {
    expect(routine("search")).toMatchObject({
      volatility: "stable",
      arguments: [{ name: "limit_to" }, { name: "words", mode: "variadic", type: { sqlName: "text[]" } }],
      returns: { shape: "composite", set: true, estimatedRows: 7, type: { table: { schema: "api", name: "films" } } },
    });
  });

  test("a single argument may have no name", () => {
    expect(routine("echo").arguments).toMatchObject([{ name: null, type: { name: "json" } }]);
  });

  test("out and inout arguments form a composite type", () => {
    const { arguments: given, returns } = routine("minmax");
    expect(given.map(({ name, mode, required, default: text }) => [name, mode, required, text])).toEqual([
      ["low", "inout", true, null],
      ["ignored", "in", false, "'x'::text"],
      ["high", "inout", false, "9"],
    ]);
    expect(returns).toMatchObject({ shape: "composite", set: false });
    expect([...returns.columns.keys()]).toEqual(["low", "high", "middle"]);
  });

  test("a function with returns table returns a set with columns", () => {
    const { returns } = routine("pairs");
    expect(returns).toMatchObject({ shape: "composite", set: true });
    expect([...returns.columns.values()].map(({ name, sqlType }) => [name, sqlType])).toEqual([
      ["x", "integer"],
      ["y", "character varying"],
    ]);
  });

  test("settings, comment and security definer are kept", () => {
    const forget = routine("forget");
    expect(forget).toMatchObject({ securityDefiner: true, comment: "Forgets", returns: { shape: "void", set: false } });
    expect(Object.fromEntries(forget.settings)).toEqual({ search_path: '""', statement_timeout: "9s" });
  });

  test("aggregates are distinguished from functions", () => {
    expect(routine("films_csv").kind).toBe("aggregate");
    expect(routine("film_csv").kind).toBe("function");
  });
});

describe("functions that take a row", () => {
  test("and return one value are computed columns, found along the search path and after real columns", () => {
    const { computedColumns } = tableOf(catalog, "films");
    expect([...computedColumns.values()].map(({ schema, name }) => `${schema}.${name}`).sort()).toEqual([
      "api.full_title",
      "extra.shout",
    ]);
  });

  test("all of them can be found at the table, with further arguments too", () => {
    const names = tableOf(catalog, "films").rowRoutines.map(({ schema, name }) => `${schema}.${name}`);
    expect(names).toEqual(expect.arrayContaining(["api.publish", "hidden.unreachable", "extra.full_title"]));
    expect(tableOf(catalog, "actors").rowRoutines).toEqual([]);
  });
});

import { beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../../../postgres/client/with-client.ts";
import { formatQuery } from "../../../../studio/api/rest-query.ts";
import {
  type FilterKind,
  type FilterOperator,
  formatFilter,
  formatRowsState,
  operatorsOf,
  parseFilter,
  parseRowsState,
  type RowFilter,
  toggleSort,
} from "../../../../studio/tables/rows/filters.ts";
import { useDatabase } from "../../../database.ts";
import { useFixture } from "../../../fixture.ts";
import { openClient } from "../../../rest-gateway/table/client.ts";
import { useService } from "../../../serve.ts";

const COLUMNS: Readonly<Record<FilterKind, { type: string; value: string; list?: string }>> = {
  text: { type: "text", value: "x", list: 'a,"b,c"' },
  number: { type: "numeric", value: "12345678901234567890.5", list: "1,2" },
  date: { type: "timestamptz", value: "2026-01-02 03:04:05.000006+00" },
  boolean: { type: "boolean", value: "" },
  enum: { type: "public.mood", value: "glad", list: "glad,sad" },
  uuid: { type: "uuid", value: "00000000-0000-4000-8000-000000000001", list: "00000000-0000-4000-8000-000000000001" },
  json: { type: "jsonb", value: '{"a": [1]}' },
  array: { type: "int[]", value: "{1,2}" },
  range: { type: "int4range", value: "[1,5)" },
  search: { type: "tsvector", value: "cat" },
  other: { type: "inet", value: "10.0.0.1" },
};
const KINDS = Object.keys(COLUMNS) as FilterKind[];

const database = useDatabase({ template: "empty" });
beforeAll(async () => {
  const columns = KINDS.map((kind) => `"${kind}" ${COLUMNS[kind].type}`).join(", ");
  await withClient(database.ownerUrl, (owner) =>
    owner.query(`
      create type public.mood as enum ('glad', 'sad');
      create table public.kinds (id int primary key, ${columns}, "order" text, "a.b ""c""" text);
      insert into public.kinds (id, text, json, "order", "a.b ""c""") values
        (1, '100%_\\a', '{"a": {"b": "x"}}', 'first', 'odd'), (2, '100 x', '{}', null, null), (3, '', null, '', '');
      grant all on public.kinds to anon`),
  );
});
const service = useService({ database, settings: { REST_REQUIRE_APIKEY: "false" } });
const client = useFixture(() => openClient(service.url));

async function idsOf(...filters: RowFilter[]): Promise<number[]> {
  const query = formatQuery([["select", "id"], ["order", "id"], ...filters.map(formatFilter)]);
  const { status, body } = await client.ask(`/kinds?${query}`);
  expect([status, body]).toEqual([200, expect.any(Array)]);
  return body.map(({ id }: { id: number }) => id);
}

const filter = (column: string, operator: FilterOperator, value = "", path = ""): RowFilter => ({
  column,
  path,
  operator,
  value,
});

describe("a filter", () => {
  test.each(KINDS.flatMap((kind) => operatorsOf(kind).map((operator) => ({ kind, operator }))))(
    "of kind $kind with $operator is read back from the address, and taken by the table interface",
    async ({ kind, operator }) => {
      const { value, list } = COLUMNS[kind];
      const path = kind === "json" && !["cs", "cd", "eq", "isNull", "notNull"].includes(operator) ? "->a->>b" : "";
      const values: Partial<Record<FilterOperator, string>> = {
        in: list ?? "",
        notIn: list ?? "",
        other: `not.eq.${value}`,
      };
      const wanted = ["isNull", "notNull", "isTrue", "isFalse"].includes(operator) ? "" : (values[operator] ?? value);
      const given = filter(kind, operator, path && operator !== "other" ? "x" : wanted, path);
      expect(parseFilter(formatFilter(given))).toEqual(given);
      await idsOf(given);
    },
  );

  test("for a part of a text finds the signs of patterns as they are", async () => {
    expect(await idsOf(filter("text", "contains", "0%_\\"))).toEqual([1]);
    expect(await idsOf(filter("text", "startsWith", "100"))).toEqual([1, 2]);
    expect(parseFilter(["text", "ilike.*a_b*"])).toEqual(filter("text", "ilike", "*a_b*"));
  });

  test("distinguishes the empty text from null", async () => {
    expect(await idsOf(filter("order", "eq", ""))).toEqual([3]);
    expect(await idsOf(filter("order", "isNull"))).toEqual([2]);
  });

  test("names columns that are called as parameters, or have other characters", async () => {
    expect(await idsOf(filter("order", "eq", "first"))).toEqual([1]);
    expect(await idsOf(filter('a.b "c"', "eq", "odd"))).toEqual([1]);
    expect(parseFilter(formatFilter(filter('a.b "c"', "eq", "odd")))).toEqual(filter('a.b "c"', "eq", "odd"));
    expect(parseFilter(["a-b->c", "eq.1"])).toEqual(filter("a-b", "eq", "1", "->c"));
  });
});

describe("the address of a table", () => {
  test("has its filters and its order", () => {
    const state = {
      filters: [filter("order", "eq", "a&b=c"), filter("data", "gt", "5", "->a->>b")],
      sort: [
        { column: "a,b", descending: true },
        { column: "id", descending: false },
      ],
    };
    expect(parseRowsState(formatRowsState(state))).toEqual(state);
    expect(formatRowsState({ filters: [], sort: [] })).toBe("");
    expect(parseRowsState("")).toEqual({ filters: [], sort: [] });
    expect(parseRowsState("order=id.desc.nullslast,name").sort).toEqual([
      { column: "id", descending: true },
      { column: "name", descending: false },
    ]);
  });

  test("is changed by clicks on headers: ascending, descending, unsorted, and with others", () => {
    const once = toggleSort([], "a", false);
    const twice = toggleSort(once, "a", false);
    expect([once, twice, toggleSort(twice, "a", false)]).toEqual([
      [{ column: "a", descending: false }],
      [{ column: "a", descending: true }],
      [],
    ]);
    const both = toggleSort(once, "b", true);
    expect(both).toEqual([
      { column: "a", descending: false },
      { column: "b", descending: false },
    ]);
    expect(toggleSort(both, "a", true)[0]).toEqual({ column: "a", descending: true });
    expect(toggleSort(both, "c", false)).toEqual([{ column: "c", descending: false }]);
  });
});

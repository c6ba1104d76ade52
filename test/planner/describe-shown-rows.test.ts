import { describe, expect, test } from "vitest";
import { describeShownRows, isBodyOfRows } from "../../planner/describe-shown-rows.ts";
import type { ReadIntent } from "../../planner/intent/intent.ts";
import type { ShownTable } from "../../planner/shown-tables.ts";
import { aggregate, column, columns, compare, eq, everyColumn, filter, read, relation, term } from "./intents.ts";
import { catalog, planIntent } from "./planner.ts";

const oidOf = (name: string) => catalog.schemas.get("api")!.tables.get(name)!.oid;
const describeRead = (intent: ReadIntent) => describeShownRows(planIntent(intent), intent, catalog)[0]!.table;
const membersOf = ({ members }: ShownTable) => Object.fromEntries(members);

describe("describeShownRows", () => {
  test("names the members that have the values of columns", () => {
    const select = [column("id"), column("title", { alias: "name" }), column("year", { cast: "text" })];
    expect(membersOf(describeRead(read("works", { select })))).toEqual({ id: "id", title: "name" });
  });

  test("names none of two members with one name", () => {
    const select = [column("id"), column("title", { alias: "name" }), column("year", { alias: "name" })];
    expect(membersOf(describeRead(read("works", { select })))).toEqual({ id: "id" });
    expect(
      membersOf(describeRead(read("hammers", { select: [everyColumn(), column("price", { alias: "id" })] }))),
    ).toEqual({ name: "name", maker: "maker", price: "price", secret: "secret" });
  });

  test("lists the conditions that all rows meet", () => {
    const where = [
      compare("id", "gte", "5"),
      filter("year", { kind: "in", values: ["1", "2"] }),
      compare("year", "lt", "9"),
      compare("year", "neq", "7"),
      filter("id", { kind: "compare", operator: "gt", quantifier: "any", value: "{1}" }),
      filter("id", { kind: "compare", operator: "eq", quantifier: null, value: "4" }, true),
      { kind: "or" as const, negated: false, conditions: [eq("id", "1")] },
      { kind: "and" as const, negated: false, conditions: [eq("id", "6")] },
    ];
    const relationOid = oidOf("works");
    expect(describeRead(read("works", { select: columns("id"), where })).comparisons).toEqual(
      [
        { column: "id", operator: "gte", values: ["5"] },
        { column: "year", operator: "eq", values: ["1", "2"] },
        { column: "year", operator: "lt", values: ["9"] },
        { column: "id", operator: "eq", values: ["6"] },
      ].map((each) => ({ relation: relationOid, ...each })),
    );
  });

  test("rows that an offset, an aggregate or distinct hides are not independent", () => {
    const isIndependent = (more: object) =>
      describeRead(read("works", { select: columns("year"), ...more })).isIndependent;
    expect([
      isIndependent({}),
      isIndependent({ window: { offset: 0, limit: 3 } }),
      isIndependent({ window: { offset: 1, limit: 3 } }),
      isIndependent({ select: [aggregate("count")] }),
    ]).toEqual([true, true, false, false]);
  });

  test.each([
    ["ascending", { select: columns("id"), order: [term("id")], window: { offset: 2, limit: 3 } }, ["id", false, 3]],
    [
      "descending",
      {
        select: [],
        order: [term("id", { direction: "desc" as const }), term("year")],
        window: { offset: 0, limit: 3 },
      },
      ["id", true, 3],
    ],
    ["ascending, where null is last", { order: [term("year")], window: { offset: 0, limit: 3 } }, ["year", false, 3]],
    [
      "descending, where null is first",
      { order: [term("year", { direction: "desc" as const })], window: { offset: 0, limit: 3 } },
      null,
    ],
    [
      "with null last",
      {
        order: [term("year", { direction: "desc" as const, nulls: "last" as const })],
        window: { offset: 0, limit: 3 },
      },
      ["year", true, 3],
    ],
    [
      "by a relation",
      {
        select: [relation("artists", columns("id"))],
        order: [term("id", { relation: "artists" })],
        window: { offset: 0, limit: 3 },
      },
      null,
    ],
    ["without an order", { window: { offset: 0, limit: 3 } }, null],
  ])("a page %s", (_what, parts, expected) => {
    const page = describeRead(read("works", parts)).page;
    expect(page && [page.column, page.isDescending, page.rows]).toEqual(expected);
  });

  test("a relation has the columns that join it", () => {
    const select = [column("title"), relation("artists", columns("id", "name"))];
    const [related] = describeRead(read("works", { select })).related;
    expect(related).toMatchObject({
      path: ["artists"],
      isList: false,
      joins: [{ relation: oidOf("artists"), column: "id", parentColumn: "artist_id" }],
      table: { relation: oidOf("artists") },
    });
  });
});

test("the body of a page by cursor is not only rows", () => {
  const intent = read("hammers", { select: columns("id"), order: [term("id")], window: { offset: 0, limit: 2 } });
  expect(isBodyOfRows(planIntent(intent))).toBe(true);
  expect(isBodyOfRows(planIntent({ ...intent, page: { kind: "first" } }))).toBe(false);
});

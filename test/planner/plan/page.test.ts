import { describe, expect, test } from "vitest";
import type { CursorPage, Intent, OrderTerm } from "../../../planner/intent/intent.ts";
import { MAX_BUFFERED_ROWS } from "../../../planner/plan/plan.ts";
import type { ApiError } from "../../../runtime/errors.ts";
import type { FixtureOptions } from "../fixture-database.ts";
import { aggregate, call, columns, field, read, relation, term } from "../intents.ts";
import { planIntent } from "../planner.ts";

const first: CursorPage = { kind: "first" };
const window = { offset: 0, limit: 2 };

function refusal(intent: Intent, options?: FixtureOptions): Pick<ApiError, "kind" | "code" | "details"> {
  try {
    planIntent(intent, options);
  } catch (error) {
    const { kind, code, details } = error as ApiError;
    return { kind, code, details };
  }
  throw new Error("It was planned");
}

/** Returns the columns and directions by which the rows of a page are ordered. */
function orderOf(name: string, order: readonly OrderTerm[], options?: FixtureOptions): unknown[] {
  const { rows } = planIntent(read(name, { order, window }, { page: first }), options);
  return rows.order.map(({ value, direction }) => [value.kind === "column" && value.name, direction]);
}

describe("an order is completed", () => {
  test("by the primary key, in the direction of its last term", () => {
    expect(orderOf("hammers", [])).toEqual([["id", null]]);
    expect(orderOf("hammers", [term("price")])).toEqual([
      ["price", null],
      ["id", null],
    ]);
    expect(orderOf("hammers", [term("maker"), term("price", { direction: "desc" })])).toEqual([
      ["maker", null],
      ["price", "desc"],
      ["id", "desc"],
    ]);
  });

  test("by the missing columns of a key", () => {
    expect(orderOf("shelves", [term("number", { direction: "desc" })])).toEqual([
      ["number", "desc"],
      ["place", "desc"],
    ]);
  });

  test("not at all if it contains a key", () => {
    expect(orderOf("hammers", [term("id"), term("price")])).toHaveLength(2);
    expect(orderOf("hammers", [term("name", { direction: "desc" })])).toEqual([["name", "desc"]]);
  });

  test("not by a key that is not unique: with nulls, or of some rows", () => {
    expect(orderOf("hammers", [term("maker")])).toHaveLength(2);
    expect(orderOf("hammers", [term("price")])).toHaveLength(2);
    expect(orderOf("hammers", [term("x", { field: field("id", "a") })])).toHaveLength(2);
  });

  test("by the key of its table in a view and in the result of a function", () => {
    expect(orderOf("hammer_names", [term("name")])).toEqual([
      ["name", null],
      ["id", null],
    ]);
    const { rows } = planIntent(call("cheap_hammers", {}, { window }, { page: first }));
    expect(rows.order).toHaveLength(1);
  });

  test("by a key that the caller may read", () => {
    expect(orderOf("hammers", [], { role: "page_clerk" })).toEqual([["name", null]]);
    expect(orderOf("shelves", [term("place")], { role: "page_clerk" })).toEqual([["place", null]]);
  });

  test("but not without a key: the client's order is used", () => {
    expect(orderOf("makers", [term("hammers")])).toEqual([["hammers", null]]);
  });
});

describe("a cursor belongs to an order", () => {
  const nameOf = (name: string, order: readonly OrderTerm[], more = {}) =>
    planIntent(read(name, { order, window, ...more }, { page: first })).keyset!.order;

  test("with any spelling, selection and page size", () => {
    const plain = nameOf("hammers", [term("price")]);
    const spelled = term("price", { direction: "asc", nulls: "last" });
    expect(nameOf("hammers", [spelled])).toBe(plain);
    expect(nameOf("hammers", [spelled, term("id")])).toBe(plain);
    expect(nameOf("hammers", [term("price")], { select: columns("name"), window: { offset: 0, limit: 9 } })).toBe(
      plain,
    );
  });

  test("and to no other order", () => {
    const names = [
      nameOf("hammers", []),
      nameOf("hammers", [term("name")]),
      nameOf("hammers", [term("name", { direction: "desc" })]),
      nameOf("hammers", [term("name", { nulls: "first" })]),
      nameOf("hammers", [term("price"), term("name")]),
      nameOf("hammers", [term("x", { field: field("price", "a") })]),
      nameOf("hammer_names", [term("name")]),
      planIntent(call("cheap_hammers", {}, { order: [term("name")], window }, { page: first })).keyset!.order,
    ];
    expect(new Set(names).size).toBe(names.length);
  });
});

describe("a page is refused", () => {
  const paged = (name: string, parts: Parameters<typeof read>[1], page: CursorPage = first) =>
    read(name, parts, { page });
  const at = (...values: (string | null)[]): CursorPage => ({
    kind: "after",
    position: { order: "elsewhere", values },
  });

  test.each<[string, Intent, string, FixtureOptions?]>([
    ["without a limit", paged("hammers", {}), "PGRST192"],
    ["of no rows", paged("hammers", { window: { offset: 0, limit: 0 } }), "PGRST192"],
    ["that begins in two places", paged("hammers", { window: { offset: 1, limit: 2 } }), "PGRST192"],
    ["of groups", paged("hammers", { select: [aggregate("count")], window }), "PGRST192"],
    [
      "of groups that a spread makes",
      paged("works", { select: [relation("artists", [aggregate("count")], { spread: true })], window }),
      "PGRST192",
    ],
    ["without an order where there is no key", paged("scraps", { window }), "PGRST193"],
    ["without an order where a view has no key", paged("makers", { window }), "PGRST193"],
    [
      "without an order where its caller may read none",
      paged("shelves", { window }),
      "PGRST193",
      { role: "page_clerk" },
    ],
    ["at what cannot be read", paged("hammers", { window }, { kind: "unreadable" }), "PGRST190"],
    ["at the position of another order", paged("hammers", { window }, at("1")), "PGRST191"],
    ["of one value", call("add", { a: "1", b: "2" }, { window }, { page: first }), "PGRST192"],
    ["of values that are no rows", call("words", {}, { window }, { page: first }), "PGRST192"],
  ])("%s", (_, intent, code, options) => {
    expect(refusal(intent, options)).toMatchObject({ kind: "invalid", code });
  });

  test("for a cursor of its order with too few values, or after the last row", () => {
    const order = planIntent(paged("hammers", { order: [term("price")], window })).keyset!.order;
    const behind = (...values: (string | null)[]): CursorPage => ({ kind: "after", position: { order, values } });
    const intent = (page: CursorPage) => paged("hammers", { order: [term("price")], window }, page);
    expect(refusal(intent(behind("1")))).toMatchObject({ code: "PGRST191" });
    expect(refusal(intent(behind("1", "2", "3")))).toMatchObject({ code: "PGRST191" });
    expect(refusal(intent(behind(null, null)))).toMatchObject({ code: "PGRST191" });
    expect(planIntent(intent(behind("1", "2"))).keyset).toMatchObject({ isFirst: false });
  });
});

test("a page has no more rows than the maximum page size, or than the settings allow", () => {
  const limitOf = (limit: number, maxRows: number | null) =>
    planIntent(read("hammers", { window: { offset: 0, limit } }, { page: first }), { maxRows }).rows.limit;
  expect(limitOf(20, null)).toBe(20);
  expect(limitOf(1_000_000, null)).toBe(MAX_BUFFERED_ROWS);
  expect(limitOf(1_000_000, 100)).toBe(100);
  expect(limitOf(20, 100)).toBe(20);
});

test("an argument of a function may have the name cursor", () => {
  const given = call("from_cursor", { cursor: "x" }, {}, { page: { kind: "unreadable" } });
  expect(planIntent(given)).toMatchObject({ keyset: null, call: { arguments: { parameters: [{ name: "cursor" }] } } });
  const paged = call("cheap_hammers", { cursor: "" }, { window }, { page: first });
  expect(planIntent(paged)).toMatchObject({ keyset: { isFirst: true }, call: { arguments: { kind: "none" } } });
});

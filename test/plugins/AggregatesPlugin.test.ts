import { describe, expect, test } from "vitest";
import { anonymous } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

const generated = useGeneratedSchema({
  aggregates: true,
  sql: `
    create table public.sales (
      id int primary key, shop text, amount numeric, pieces int not null, weight float8, sold_on date, secret int
    );
    create table public.sale_sum (id int primary key);
    grant select (id, shop, amount, pieces, weight, sold_on) on public.sales to anon;
    grant select on public.sale_sum to anon;
    insert into public.sales values
      (1, 'a', 1.50, 3, 0.5, '2026-01-01', 7), (2, 'a', 2.25, 4, 1.5, '2026-01-02', 7),
      (3, 'b', null, 5, null, '2026-01-03', 7), (4, null, 10, 1, 2, null, 7);
    alter table public.sales enable row level security;
    create policy shown on public.sales for select using (id < 5);
    insert into public.sales values (5, 'hidden', 1000, 1000, 1, '2030-01-01', 7);
  `,
});
const read: typeof generated.read = (...request) => generated.read(...request);
const sortedBy = (key: string, rows: readonly { group: Record<string, unknown> }[]) =>
  rows.toSorted((one, other) => (String(one.group[key]) < String(other.group[key]) ? -1 : 1));

describe("the aggregates of a connection", () => {
  test("are of all its rows that the caller may see, whatever page is selected", async () => {
    const { sales } = await read(
      anonymous,
      `{ sales(first: 1) { edges { node { id } } totalCount aggregates {
        count sum { amount pieces weight } avg { amount pieces weight } min { shop soldOn } max { shop amount soldOn } } } }`,
    );
    expect(sales.totalCount).toBe(4);
    expect(sales.aggregates).toEqual([
      {
        count: "4",
        sum: { amount: "13.75", pieces: "13", weight: 4 },
        avg: { amount: "4.5833333333333333", pieces: "3.2500000000000000", weight: 4 / 3 },
        min: { shop: "a", soldOn: "2026-01-01" },
        max: { shop: "b", amount: "10", soldOn: "2026-01-03" },
      },
    ]);
  });

  test("are of the rows that its filters select", async () => {
    const { sales } = await read(
      anonymous,
      "{ sales(where: { pieces: { gt: 3 } }, orderBy: [{ amount: DESC }]) { aggregates { count sum { pieces } } } }",
    );
    expect(sales.aggregates).toEqual([{ count: "2", sum: { pieces: "9" } }]);
  });

  test("are grouped by the selected columns, in each alias by its own", async () => {
    const { sales } = await read(
      anonymous,
      `{ sales { byShop: aggregates { group { shop } count sum { pieces } }
        byBoth: aggregates { group { shop soldOn } count } all: aggregates { count } } }`,
    );
    expect(sortedBy("shop", sales.byShop)).toEqual([
      { group: { shop: "a" }, count: "2", sum: { pieces: "7" } },
      { group: { shop: "b" }, count: "1", sum: { pieces: "5" } },
      { group: { shop: null }, count: "1", sum: { pieces: "1" } },
    ]);
    expect(sales.byBoth).toHaveLength(4);
    const { articles } = await read(anonymous, "{ articles { aggregates { group { status authorId } count } } }");
    expect(articles.aggregates).toEqual([]);
    expect(sales.all).toEqual([{ count: "4" }]);
  });

  test("of no rows are a count of 0 and nulls", async () => {
    const { sales } = await read(
      anonymous,
      `{ sales(where: { shop: { eq: "nowhere" } }) { aggregates { count sum { pieces } max { shop } }
        groups: aggregates { group { shop } count } } }`,
    );
    expect(sales).toEqual({ aggregates: [{ count: "0", sum: { pieces: null }, max: { shop: null } }], groups: [] });
  });

  test("have no columns that no role may read, and no sums of ids", () => {
    const type = generated.schema.getType("SaleSum_") as unknown as { getFields(): object };
    expect(Object.keys(type.getFields()).sort()).toEqual(["amount", "pieces", "weight"]);
    expect(generated.schema.getType("SaleSum")).toBeDefined();
  });
});

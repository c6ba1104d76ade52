import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type LayoutBox, type LayoutEdge, layOut } from "../../studio/schema/layout.ts";

const boxOf = (id: string, width = 180, height = 120): LayoutBox => ({ id, width, height });

function overlaps(boxes: readonly LayoutBox[], edges: readonly LayoutEdge[]): string[] {
  const layout = layOut(boxes, edges);
  expect(layout.size).toBe(boxes.length);
  return boxes.flatMap((one, index) =>
    boxes.slice(index + 1).flatMap((other) => {
      const [a, b] = [layout.get(one.id)!, layout.get(other.id)!];
      const apart =
        a.x + one.width <= b.x || b.x + other.width <= a.x || a.y + one.height <= b.y || b.y + other.height <= a.y;
      return apart ? [] : [`${one.id} ${other.id}`];
    }),
  );
}

/** A schema as large as they get: each table refers to some of the tables before it, a few to many. */
function largeSchema(count: number) {
  const boxes = Array.from({ length: count }, (_, n) => boxOf(`t${n}`, 160 + (n % 5) * 20, 60 + (n % 17) * 20));
  const edges = boxes.flatMap((_, n) =>
    [Math.floor(n / 3), (n * 7) % 11, n - 1].filter((to) => to >= 0).map((to) => ({ from: `t${n}`, to: `t${to}` })),
  );
  return { boxes, edges };
}

describe("the layout of the diagram", () => {
  test("places a table right of the tables that it refers to", () => {
    const layout = layOut(
      ["comments", "articles", "users"].map((id) => boxOf(id)),
      [
        { from: "comments", to: "articles" },
        { from: "articles", to: "users" },
        { from: "comments", to: "users" },
      ],
    );
    const [users, articles, comments] = ["users", "articles", "comments"].map((id) => layout.get(id)!.x);
    expect(users).toBe(0);
    expect(articles).toBeGreaterThan(users! + 180);
    expect(comments).toBeGreaterThan(articles! + 180);
  });

  test("never lets boxes overlap, whatever refers to what", () => {
    const size = fc.integer({ min: 20, max: 600 });
    const schema = fc.integer({ min: 0, max: 40 }).chain((count) =>
      fc.record({
        boxes: fc.array(fc.tuple(size, size), { minLength: count, maxLength: count }),
        edges: fc.array(fc.tuple(fc.nat(count), fc.nat(count)), { maxLength: 80 }),
      }),
    );
    fc.assert(
      fc.property(schema, ({ boxes, edges }) => {
        const named = boxes.map(([width, height], n) => boxOf(`t${n}`, width, height));
        const found = overlaps(
          named,
          edges.map(([from, to]) => ({ from: `t${from}`, to: `t${to}` })),
        );
        expect(found).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });

  test("is the same for the same tables, in whichever order they come", () => {
    const { boxes, edges } = largeSchema(60);
    const first = layOut(boxes, edges);
    const second = layOut([...boxes].reverse(), [...edges].reverse());
    expect([...second].sort()).toEqual([...first].sort());
  });

  test("places circles of references and tables that refer to themselves", () => {
    const edges = [
      { from: "a", to: "b" },
      { from: "b", to: "c" },
      { from: "c", to: "a" },
      { from: "a", to: "a" },
    ];
    expect(
      overlaps(
        ["a", "b", "c"].map((id) => boxOf(id)),
        edges,
      ),
    ).toEqual([]);
  });

  test("splits a layer of many tables into columns, so that the diagram fits a screen", () => {
    const boxes = [boxOf("users"), ...Array.from({ length: 100 }, (_, n) => boxOf(`t${n}`))];
    const edges = boxes.slice(1).map(({ id }) => ({ from: id, to: "users" }));
    const places = [...layOut(boxes, edges).values()];
    expect(overlaps(boxes, edges)).toEqual([]);
    expect(Math.max(...places.map(({ y }) => y))).toBeLessThan(2000);
  });

  test("leaves room between the boxes of a thousand tables", () => {
    const { boxes, edges } = largeSchema(1000);
    expect(overlaps(boxes, edges)).toEqual([]);
  });

  test("takes a chain of ten thousand tables", () => {
    const boxes = Array.from({ length: 10_000 }, (_, n) => boxOf(`t${n}`));
    const edges = boxes.slice(1).map(({ id }, n) => ({ from: id, to: `t${n}` }));
    expect(layOut(boxes, edges).size).toBe(10_000);
  });
});

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { findClusters } from "../../../studio/schema/clusters.ts";
import { type LayoutBox, type LayoutEdge, layOut } from "../../../studio/schema/layout.ts";

const boxOf = (id: string): LayoutBox => ({ id, width: 180, height: 120 });

/** Areas of ten tables; all tables refer to users, and the parts of an area to its first table. */
function shop(areas: number) {
  const edges: LayoutEdge[] = [];
  const ids = ["users", "settings", "versions"];
  for (let area = 0; area < areas; area++) {
    ids.push(`area${area}`);
    edges.push({ from: `area${area}`, to: "users" });
    for (let part = 0; part < 9; part++) {
      ids.push(`area${area}.${part}`);
      edges.push({ from: `area${area}.${part}`, to: "users" }, { from: `area${area}.${part}`, to: `area${area}` });
    }
  }
  return { boxes: ids.map(boxOf), edges };
}

describe("the clusters of a large diagram", () => {
  test("are around the tables that few others refer to, and those without relations", () => {
    const { boxes, edges } = shop(20);
    const clusters = findClusters(boxes, edges);
    expect(clusters).toHaveLength(21);
    const inArea = clusters.find(({ center }) => center === "area7")!;
    expect(inArea.ids).toEqual(["area7", ...Array.from({ length: 9 }, (_, part) => `area7.${part}`)]);
    // All areas refer to users: it is not alone in a cluster.
    expect(clusters[0]).toMatchObject({ center: "area0", ids: expect.arrayContaining(["users", "area0.8"]) });
    expect(clusters.at(-1)).toEqual({ center: null, ids: ["settings", "versions"] });
  });

  test("are not needed for few tables", () => {
    const { boxes, edges } = shop(5);
    expect(boxes).toHaveLength(53);
    expect(findClusters(boxes, edges)).toEqual([]);
  });

  test("have each table once, with its center, the same in whichever order tables come, and lie apart", () => {
    const count = 80;
    const table = fc.nat(count - 1);
    fc.assert(
      fc.property(fc.array(fc.tuple(table, table), { maxLength: 200 }), (pairs) => {
        const boxes = Array.from({ length: count }, (_, n) => boxOf(`t${n}`));
        const edges = pairs.map(([from, to]) => ({ from: `t${from}`, to: `t${to}` }));
        const clusters = findClusters(boxes, edges);
        expect(clusters.flatMap(({ ids }) => ids).sort()).toEqual(boxes.map(({ id }) => id).sort());
        for (const { center, ids } of clusters) expect(center === null || ids.includes(center)).toBe(true);
        expect(findClusters([...boxes].reverse(), [...edges].reverse())).toEqual(clusters);
        const related = clusters.filter(({ center }) => center !== null).map(({ ids }) => ids);
        const single = clusters.flatMap(({ center, ids }) => (center === null ? ids.map((id) => [id]) : []));
        const layout = layOut(boxes, edges, [...related, ...single]);
        const frames = related.map((ids) => {
          const places = ids.map((id) => layout.get(id)!);
          const [xs, ys] = [places.map(({ x }) => x), places.map(({ y }) => y)];
          return [Math.min(...xs), Math.min(...ys), Math.max(...xs) + 180, Math.max(...ys) + 120] as const;
        });
        for (const [index, [left, top, right, bottom]] of frames.entries()) {
          for (const [otherLeft, otherTop, otherRight, otherBottom] of frames.slice(index + 1)) {
            const apart = right <= otherLeft || otherRight <= left || bottom <= otherTop || otherBottom <= top;
            expect(apart).toBe(true);
          }
        }
      }),
      { numRuns: 100 },
    );
  });

  test("are found in a chain of ten thousand tables", () => {
    const boxes = Array.from({ length: 10_000 }, (_, n) => boxOf(`t${n}`));
    const edges = boxes.slice(1).map(({ id }, n) => ({ from: id, to: `t${n}` }));
    const clusters = findClusters(boxes, edges);
    expect(clusters.length).toBeGreaterThan(1_000);
    expect(Math.max(...clusters.map(({ ids }) => ids.length))).toBeLessThan(20);
  });
});

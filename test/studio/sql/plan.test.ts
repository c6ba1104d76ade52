import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { StatementPlan } from "#operations/admin-types";
import { layOutPlan, NODE_HEIGHT, NODE_WIDTH } from "../../../studio/sql/plan/plan-layout.ts";
import { type PlanNode, planNodes, readPlan, writePlan } from "../../../studio/sql/plan/plan-tree.ts";

// Plans that Postgres 18 made.
const PLANS = ["insert", "join", "misestimated", "not-analyzed", "parallel", "subplans"] as const;

const planOf = (name: (typeof PLANS)[number]) =>
  readPlan(JSON.parse(readFileSync(new URL(`plans/${name}.json`, import.meta.url), "utf8")) as StatementPlan);
const nodesOf = (name: (typeof PLANS)[number]) => [...planNodes(planOf(name).root)];
const titles = (nodes: readonly PlanNode[]) => nodes.map(({ title, subject }) => `${title} ${subject ?? ""}`.trim());

describe("the nodes of a plan", () => {
  test("say what they do and what they read", () => {
    expect(titles(nodesOf("join"))).toEqual([
      "Limit",
      "Sort",
      "Hash Aggregate",
      "Hash Join",
      "Seq Scan on films f",
      "Hash",
      "Seq Scan on directors d",
    ]);
    expect(titles(nodesOf("misestimated"))[2]).toBe("Index Scan using films_pkey on films f");
    expect(titles(nodesOf("insert"))[0]).toBe("Insert on directors");
  });

  test("have a time of their own, and the slowest is marked", () => {
    for (const name of PLANS) {
      const nodes = nodesOf(name);
      expect(nodes.filter(({ isSlowest }) => isSlowest).length).toBe(1);
      expect(nodes.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
    }
    const slowest = nodesOf("misestimated").find(({ isSlowest }) => isSlowest)!;
    expect(titles([slowest])).toEqual(["Index Scan using films_pkey on films f"]);
  });

  test("of parallel workers share the time of their loops", () => {
    const { root, executionMilliseconds } = planOf("parallel");
    for (const { milliseconds } of planNodes(root)) expect(milliseconds).toBeLessThanOrEqual(executionMilliseconds!);
    const scan = nodesOf("parallel").at(-1)!;
    expect([scan.title, scan.rows]).toEqual(["Parallel Seq Scan", 60_000]);
  });

  test("that read a query of WITH do not count its time twice", () => {
    const nodes = nodesOf("subplans");
    const total = nodes.reduce((sum, { ownMilliseconds }) => sum + (ownMilliseconds ?? 0), 0);
    expect(total).toBeLessThanOrEqual(planOf("subplans").executionMilliseconds! * 1.05);
  });

  test("with other row counts than estimated are marked, except where a limit stopped them", () => {
    expect(nodesOf("misestimated").map(({ misestimate }) => misestimate && Math.round(misestimate))).toEqual([
      225,
      225,
      null,
    ]);
    expect(nodesOf("join").every(({ misestimate }) => misestimate === null)).toBe(true);
  });

  test("without analyze are compared by their cost", () => {
    const { isAnalyzed, root } = planOf("not-analyzed");
    expect(isAnalyzed).toBe(false);
    expect(root).toMatchObject({ rows: null, milliseconds: null, isSlowest: true, misestimate: null });
  });

  test("have all other properties as details", () => {
    const scan = nodesOf("misestimated").at(-1)!;
    expect(scan.details).toContainEqual({ name: "Index Cond", value: "(f.id = s.parent)" });
    expect(scan.details.map(({ name }) => name)).toContain("Shared Hit Blocks");
  });
});

describe("the picture of a plan", () => {
  test.each(PLANS)("has no overlapping nodes, and each parent is above its children: %s", (name) => {
    const { nodes, edges, width, height } = layOutPlan(planOf(name).root);
    for (const [index, one] of nodes.entries()) {
      expect(one.x).toBeGreaterThanOrEqual(0);
      expect(one.x + NODE_WIDTH).toBeLessThanOrEqual(width);
      expect(one.y + NODE_HEIGHT).toBeLessThanOrEqual(height);
      for (const other of nodes.slice(index + 1)) {
        const isApart = Math.abs(one.x - other.x) >= NODE_WIDTH || Math.abs(one.y - other.y) >= NODE_HEIGHT;
        expect(isApart).toBe(true);
      }
    }
    expect(edges.length).toBe(nodes.length - 1);
    for (const { from, to } of edges) expect(from.y).toBeGreaterThan(to.y);
  });

  test("has wider lines for more rows", () => {
    const widths = layOutPlan(planOf("join").root)
      .edges.toSorted((one, other) => one.rows - other.rows)
      .map(({ width }) => width);
    expect(widths).toEqual(widths.toSorted((one, other) => one - other));
    expect(widths.at(-1)).toBeGreaterThan(widths[0]! * 2);
  });
});

test("a plan can be read as text", () => {
  const text = writePlan(planOf("join"));
  expect(text).toMatch(/^Limit {2}\(cost=/);
  expect(text).toContain("  ->  Seq Scan on films f  (cost=");
  expect(text).toMatch(/\nPlanning Time: [\d.]+ ms\nExecution Time: [\d.]+ ms$/);
});

import type { PlanNode } from "./plan-tree.ts";

export const NODE_WIDTH = 208;
export const NODE_HEIGHT = 88;
const GAP_X = 20;
const GAP_Y = 44;
const MAX_EDGE_WIDTH = 14;

export type PlacedNode = { readonly node: PlanNode; readonly x: number; readonly y: number };

/** The rows that flow from a node to its parent; the edge is wider for more rows. */
export type PlanEdge = {
  readonly from: PlacedNode;
  readonly to: PlacedNode;
  readonly rows: number;
  readonly width: number;
};

export type PlanLayout = {
  readonly nodes: readonly PlacedNode[];
  readonly edges: readonly PlanEdge[];
  readonly width: number;
  readonly height: number;
};

/** Lays out a tree with its root at the top: each node is above the middle of its children, whose subtrees stand side by side. */
export function layOutPlan(root: PlanNode): PlanLayout {
  const nodes: PlacedNode[] = [];
  const edges: PlanEdge[] = [];

  const place = (node: PlanNode, left: number, depth: number): PlacedNode => {
    let next = left + Math.max(0, (NODE_WIDTH - widthBelow(node)) / 2);
    const children = node.children.map((child) => {
      const placed = place(child, next, depth + 1);
      next += widthOf(child) + GAP_X;
      return placed;
    });
    const x = children.length === 0 ? left : (children[0]!.x + children.at(-1)!.x) / 2;
    const placed = { node, x, y: depth * (NODE_HEIGHT + GAP_Y) };
    nodes.push(placed);
    for (const child of children) edges.push(edgeFrom(child, placed));
    return placed;
  };

  place(root, 0, 0);
  return {
    nodes: nodes.sort((one, other) => one.node.id - other.node.id),
    edges,
    width: widthOf(root),
    height: Math.max(...nodes.map(({ y }) => y)) + NODE_HEIGHT,
  };
}

function widthOf(node: PlanNode): number {
  return Math.max(NODE_WIDTH, widthBelow(node));
}

function widthBelow({ children }: PlanNode): number {
  return children.reduce((sum, child) => sum + widthOf(child) + GAP_X, -GAP_X);
}

function edgeFrom(from: PlacedNode, to: PlacedNode): PlanEdge {
  const rows = from.node.rows ?? from.node.estimatedRows;
  return { from, to, rows, width: Math.min(MAX_EDGE_WIDTH, 1 + 1.8 * Math.log10(rows + 1)) };
}

import { findComponents, type Graph, type LayoutBox, type LayoutEdge, toGraph, toLayers } from "./layout.ts";

/** Tables that belong together. */
export type Cluster = {
  /** The table that the others refer to; null for tables without relations. */
  readonly center: string | null;
  readonly ids: readonly string[];
};

/** The number of tables above which a diagram is divided, and their columns are hidden at first. */
export const MANY_TABLES = 60;
/** The number of tables at which a cluster is complete. */
const CLUSTER_SIZE = 8;

/**
 * Divides a large diagram: a table is in the cluster of the table that it refers to, and that the fewest others refer to.
 * So the lines of an order stay with the order, although both also refer to users. Each table is in one cluster, and the
 * same tables have the same clusters. A small diagram has none.
 */
export function findClusters(boxes: readonly LayoutBox[], edges: readonly LayoutEdge[]): readonly Cluster[] {
  if (boxes.length <= MANY_TABLES) return [];
  const graph = toGraph(boxes, edges);
  const components = findComponents(graph);
  const related = components.filter((ids) => ids.length > 1).flatMap((ids) => divide(ids, graph));
  const single = components.filter((ids) => ids.length === 1).flat();
  const clusters = related.sort((one, other) => other.ids.length - one.ids.length);
  return single.length > 0 ? [...clusters, { center: null, ids: single }] : clusters;
}

function divide(ids: readonly string[], graph: Graph): Cluster[] {
  const layers = toLayers(ids, graph);
  const parents = findParents(layers, graph);
  const centers = findCenters(layers, parents);
  const centerOf = new Map<string, string>();
  for (const id of layers.flat()) centerOf.set(id, centers.has(id) ? id : centerOf.get(parents.get(id)!)!);
  joinLonely(centerOf, graph);
  return [...Map.groupBy(ids, (id) => centerOf.get(id)!)].map(([center, own]) => ({ center, ids: own }));
}

/** Returns the parent of each table that has one: of its targets in lower layers, that with the fewest sources. */
function findParents(layers: readonly (readonly string[])[], { targets, sources }: Graph): ReadonlyMap<string, string> {
  const layerOf = new Map(layers.flatMap((layer, index) => layer.map((id) => [id, index] as const)));
  const parents = new Map<string, string>();
  for (const [id, layer] of layerOf) {
    const lower = targets.get(id)!.filter((target) => layerOf.get(target)! < layer);
    const [parent] = lower.sort((one, other) => sources.get(one)!.length - sources.get(other)!.length);
    if (parent !== undefined) parents.set(id, parent);
  }
  return parents;
}

/** Returns the tables without a parent, and those below which enough tables are left when others are cut off. */
function findCenters(
  layers: readonly (readonly string[])[],
  parents: ReadonlyMap<string, string>,
): ReadonlySet<string> {
  const sizes = new Map<string, number>();
  const centers = new Set<string>();
  for (const id of layers.flat().reverse()) {
    const size = (sizes.get(id) ?? 0) + 1;
    const parent = parents.get(id);
    if (parent === undefined || size >= CLUSTER_SIZE) centers.add(id);
    else sizes.set(parent, (sizes.get(parent) ?? 0) + size);
  }
  return centers;
}

/** Moves a table that is alone in its cluster to that of the first table that refers to it, or that it refers to. */
function joinLonely(centerOf: Map<string, string>, { sources, targets }: Graph): void {
  const sizes = new Map<string, number>();
  for (const center of centerOf.values()) sizes.set(center, (sizes.get(center) ?? 0) + 1);
  for (const [id, center] of centerOf) {
    const [neighbour] = [...sources.get(id)!, ...targets.get(id)!];
    if (sizes.get(center) !== 1 || neighbour === undefined) continue;
    const joined = centerOf.get(neighbour)!;
    centerOf.set(id, joined);
    sizes.set(joined, sizes.get(joined)! + 1);
    sizes.delete(center);
  }
}

/** A box of the diagram, without a position. */
export type LayoutBox = { readonly id: string; readonly width: number; readonly height: number };
/** A reference from a table to another. */
export type LayoutEdge = { readonly from: string; readonly to: string };
export type Point = { readonly x: number; readonly y: number };
/** The positions of the upper left corners by id. */
type Layout = ReadonlyMap<string, Point>;

const COLUMN_GAP = 72;
const ROW_GAP = 28;
const COMPONENT_GAP = 56;
/** The maximum height of a layer that is not split into columns. */
const COLUMN_HEIGHT = 1200;
const SWEEPS = 6;
/** The ratio of width to height of the whole diagram. */
const ASPECT = 1.6;

export type Graph = {
  readonly boxes: ReadonlyMap<string, LayoutBox>;
  /** The other tables that a table refers to; `sources` are those that refer to it. */
  readonly targets: ReadonlyMap<string, readonly string[]>;
  readonly sources: ReadonlyMap<string, readonly string[]>;
};
type Columns = readonly (readonly string[])[];
type PlacedGroup = { readonly places: Map<string, Point>; readonly width: number; readonly height: number };

/**
 * Places boxes in layers: a table is right of those that it refers to. Tables without relations come last. No two
 * boxes overlap, and the same input has the same result. Edges between groups do not count; by default, the groups are
 * the tables that are connected.
 */
export function layOut(
  boxes: readonly LayoutBox[],
  edges: readonly LayoutEdge[],
  groups: readonly (readonly string[])[] = findComponents(toGraph(boxes, edges)),
): Layout {
  const groupOf = new Map(groups.flatMap((ids, group) => ids.map((id) => [id, group] as const)));
  const graph = toGraph(
    boxes,
    edges.filter(({ from, to }) => groupOf.get(from) === groupOf.get(to)),
  );
  const related = groups.filter((ids) => ids.length > 1).sort((one, other) => other.length - one.length);
  const single = groups.filter((ids) => ids.length === 1).flat();
  const placed = related.map((ids) => placeColumns(toColumns(orderLayers(toLayers(ids, graph), graph), graph), graph));
  if (single.length > 0) placed.push(placeInRows(single, graph));
  return packGroups(placed);
}

export function toGraph(boxes: readonly LayoutBox[], edges: readonly LayoutEdge[]): Graph {
  const byId = new Map([...boxes].sort((one, other) => compare(one.id, other.id)).map((box) => [box.id, box]));
  const targets = new Map<string, string[]>([...byId.keys()].map((id) => [id, []]));
  const sources = new Map<string, string[]>([...byId.keys()].map((id) => [id, []]));
  for (const { from, to } of edges) {
    if (from === to || !byId.has(from) || !byId.has(to) || targets.get(from)!.includes(to)) continue;
    targets.get(from)!.push(to);
    sources.get(to)!.push(from);
  }
  for (const list of [...targets.values(), ...sources.values()]) list.sort(compare);
  return { boxes: byId, targets, sources };
}

export function findComponents({ boxes, targets, sources }: Graph): string[][] {
  const seen = new Set<string>();
  const components: string[][] = [];
  for (const start of boxes.keys()) {
    if (seen.has(start)) continue;
    seen.add(start);
    const ids = [start];
    for (const id of ids) {
      for (const next of [...targets.get(id)!, ...sources.get(id)!]) {
        if (seen.has(next)) continue;
        seen.add(next);
        ids.push(next);
      }
    }
    components.push(ids.sort(compare));
  }
  return components;
}

/** The layer of a table is one more than the highest of its targets; one reference of a circle is ignored. */
export function toLayers(ids: readonly string[], { targets }: Graph): string[][] {
  const layerOf = new Map<string, number>();
  const open = new Set<string>();
  for (const start of ids) visit(start);
  const layers = Map.groupBy(ids, (id) => layerOf.get(id)!);
  return [...layers].sort(([one], [other]) => one - other).map(([, layer]) => layer);

  /** Visits the tables without recursion, since chains of references can be long. */
  function visit(start: string): void {
    const stack = [{ id: start, next: 0, layer: 0 }];
    while (stack.length > 0) {
      const frame = stack.at(-1)!;
      if (layerOf.has(frame.id)) {
        stack.pop();
        continue;
      }
      open.add(frame.id);
      const target = targets.get(frame.id)![frame.next];
      if (target === undefined) {
        layerOf.set(frame.id, frame.layer);
        open.delete(frame.id);
        stack.pop();
      } else if (layerOf.has(target)) {
        frame.layer = Math.max(frame.layer, layerOf.get(target)! + 1);
        frame.next++;
      } else if (open.has(target)) {
        frame.next++;
      } else {
        stack.push({ id: target, next: 0, layer: 0 });
      }
    }
  }
}

/** Moves each box to the average position of its neighbours, which leaves few lines that cross. */
function orderLayers(layers: readonly string[][], { targets, sources }: Graph): string[][] {
  const ordered = layers.map((layer) => [...layer]);
  const positions = new Map<string, number>();
  const note = (layer: readonly string[]) => {
    for (const [index, id] of layer.entries()) positions.set(id, (index + 0.5) / layer.length);
  };
  for (const layer of ordered) note(layer);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const neighbours = sweep % 2 === 0 ? targets : sources;
    for (const layer of sweep % 2 === 0 ? ordered : [...ordered].reverse()) {
      const averages = new Map(layer.map((id) => [id, average(neighbours.get(id)!, positions) ?? positions.get(id)!]));
      layer.sort((one, other) => averages.get(one)! - averages.get(other)! || compare(one, other));
      note(layer);
    }
  }
  return ordered;
}

/** Splits layers that are too tall into columns of about the same height. */
function toColumns(layers: readonly (readonly string[])[], { boxes }: Graph): string[][] {
  const area = layers.flat().reduce((sum, id) => sum + areaOf(boxes.get(id)!, COLUMN_GAP), 0);
  const maxHeight = Math.max(COLUMN_HEIGHT, Math.sqrt(area / ASPECT));
  return layers.flatMap((layer) => {
    const total = layer.reduce((sum, id) => sum + boxes.get(id)!.height + ROW_GAP, 0);
    const count = Math.ceil(total / maxHeight);
    const columns: string[][] = [];
    let height = 0;
    for (const id of layer) {
      if (columns.length === 0 || (height >= total / count && columns.length < count)) {
        columns.push([]);
        height = 0;
      }
      columns.at(-1)!.push(id);
      height += boxes.get(id)!.height + ROW_GAP;
    }
    return columns;
  });
}

/** Places columns from left to right; within a column, boxes are as near to their left neighbours as the order allows. */
function placeColumns(columns: Columns, { boxes, targets }: Graph): PlacedGroup {
  const places = new Map<string, Point>();
  const middles = new Map<string, number>();
  let x = 0;
  for (const column of columns) {
    const wanted = column.map((id) => (average(targets.get(id)!, middles) ?? 0) - boxes.get(id)!.height / 2);
    const tops = separate(
      wanted,
      column.map((id) => boxes.get(id)!.height),
    );
    column.forEach((id, index) => {
      places.set(id, { x, y: tops[index]! });
      middles.set(id, tops[index]! + boxes.get(id)!.height / 2);
    });
    x += Math.max(...column.map((id) => boxes.get(id)!.width)) + COLUMN_GAP;
  }
  return normalize(places, boxes);
}

/** Returns the tops nearest to the wanted ones at which boxes in this order do not overlap: touching blocks move together. */
function separate(wanted: readonly number[], heights: readonly number[]): number[] {
  type Block = { first: number; count: number; sum: number; height: number };
  const blocks: Block[] = [];
  const topOf = ({ sum, count }: Block) => sum / count;
  wanted.forEach((top, index) => {
    let block: Block = { first: index, count: 1, sum: top, height: heights[index]! + ROW_GAP };
    for (let before = blocks.at(-1); before && topOf(before) + before.height > topOf(block); before = blocks.at(-1)) {
      blocks.pop();
      const sum = before.sum + block.sum - block.count * before.height;
      block = { ...before, sum, count: before.count + block.count, height: before.height + block.height };
    }
    blocks.push(block);
  });
  return blocks.flatMap((block) => {
    let top = topOf(block);
    return heights.slice(block.first, block.first + block.count).map((height) => {
      const place = top;
      top += height + ROW_GAP;
      return place;
    });
  });
}

function placeInRows(ids: readonly string[], { boxes }: Graph): PlacedGroup {
  const area = ids.reduce((sum, id) => sum + areaOf(boxes.get(id)!, ROW_GAP), 0);
  const maxWidth = Math.sqrt(area * ASPECT);
  const places = new Map<string, Point>();
  let [x, y, rowHeight] = [0, 0, 0];
  for (const id of [...ids].sort(
    (one, other) => boxes.get(other)!.height - boxes.get(one)!.height || compare(one, other),
  )) {
    const { width, height } = boxes.get(id)!;
    if (x > 0 && x + width > maxWidth) {
      y += rowHeight + ROW_GAP;
      [x, rowHeight] = [0, 0];
    }
    places.set(id, { x, y });
    x += width + ROW_GAP;
    rowHeight = Math.max(rowHeight, height);
  }
  return normalize(places, boxes);
}

/** Moves the group to position 0, 0. */
function normalize(places: ReadonlyMap<string, Point>, boxes: Graph["boxes"]): PlacedGroup {
  let [left, top, right, bottom] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 0, Number.NEGATIVE_INFINITY];
  for (const [id, { x, y }] of places) {
    const { width, height } = boxes.get(id)!;
    [left, top, right, bottom] = [
      Math.min(left, x),
      Math.min(top, y),
      Math.max(right, x + width),
      Math.max(bottom, y + height),
    ];
  }
  const moved = new Map([...places].map(([id, { x, y }]) => [id, { x: Math.round(x - left), y: Math.round(y - top) }]));
  return { places: moved, width: right - left, height: bottom - top };
}

/** Packs groups into rows. A row is as wide as the largest group, or as the width that gives the diagram the ratio of a screen. */
function packGroups(groups: readonly PlacedGroup[]): Layout {
  const area = groups.reduce((sum, { width, height }) => sum + (width + COMPONENT_GAP) * (height + COMPONENT_GAP), 0);
  const maxWidth = Math.max(Math.sqrt(area * ASPECT), ...groups.map(({ width }) => width));
  const layout = new Map<string, Point>();
  let [left, top, rowHeight] = [0, 0, 0];
  for (const { places, width, height } of groups) {
    if (left > 0 && left + width > maxWidth) {
      top += rowHeight + COMPONENT_GAP;
      [left, rowHeight] = [0, 0];
    }
    for (const [id, { x, y }] of places) layout.set(id, { x: Math.round(left) + x, y: Math.round(top) + y });
    left += width + COMPONENT_GAP;
    rowHeight = Math.max(rowHeight, height);
  }
  return layout;
}

/** Returns the area with the gaps beside and below the box. */
function areaOf({ width, height }: Pick<LayoutBox, "width" | "height">, gap: number): number {
  return (width + gap) * (height + ROW_GAP);
}

/** Returns null if none of them has a position yet. */
function average(ids: readonly string[], positions: ReadonlyMap<string, number>): number | null {
  const known = ids.flatMap((id) => positions.get(id) ?? []);
  return known.length === 0 ? null : known.reduce((sum, each) => sum + each, 0) / known.length;
}

/** Compares texts independently of the browser's language. */
function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

import {
  type DatabaseDescription,
  type DescribedForeignKey,
  type DescribedTable,
  isSameName,
  nameKey,
} from "../api/catalog.ts";
import type { LayoutEdge, Point } from "./layout.ts";

export const COLUMN_CHOICES = ["all", "keys", "none"] as const;
/** The choice of columns that the boxes show. */
export type ColumnChoice = (typeof COLUMN_CHOICES)[number];

type DiagramRow = {
  readonly name: string;
  readonly type: string;
  readonly isKey: boolean;
  readonly isForeign: boolean;
  readonly nullable: boolean;
};

export type DiagramBox = {
  readonly id: string;
  readonly table: DescribedTable;
  readonly title: string;
  readonly rows: readonly DiagramRow[];
  readonly width: number;
  readonly height: number;
};

/** A foreign key, from the table that has it. */
export type DiagramLink = LayoutEdge & {
  readonly id: string;
  readonly key: DescribedForeignKey;
  /** The indexes of the columns' rows in both boxes; empty if the boxes do not show the columns. */
  readonly fromRows: readonly number[];
  readonly toRows: readonly number[];
  /** True if several rows may refer to the same row. */
  readonly isMany: boolean;
  /** True if a row may refer to no row. */
  readonly isOptional: boolean;
};

export type DiagramModel = { readonly boxes: readonly DiagramBox[]; readonly links: readonly DiagramLink[] };

type DiagramChoice = {
  readonly tables: readonly DescribedTable[];
  readonly columns: ColumnChoice;
};

export const HEAD_HEIGHT = 30;
export const ROW_HEIGHT = 20;
const FOOT_HEIGHT = 6;
const CHARACTER_WIDTH = 6.9;
const MIN_WIDTH = 140;
const MAX_WIDTH = 320;
const PADDING = 44;

/** Returns the tables of these schemas, or those around one table; without views and partitions. */
export function chooseTables(
  catalog: DatabaseDescription,
  schema: string | null,
  around: string | null,
): DescribedTable[] {
  const internal = new Set(catalog.schemas.filter((each) => each.internal).map(({ name }) => name));
  const drawn = catalog.tables.filter(({ kind, partition_bound: bound }) => /table/.test(kind) && bound === null);
  const center = drawn.find((table) => nameKey(table) === around);
  if (center) {
    const refersTo = (one: DescribedTable, other: DescribedTable) =>
      one.foreign_keys.some(({ target }) => isSameName(target, other));
    return drawn.filter((table) => table === center || refersTo(table, center) || refersTo(center, table));
  }
  return drawn.filter((table) => (schema === null ? !internal.has(table.schema) : table.schema === schema));
}

export function toDiagram({ tables, columns }: DiagramChoice): DiagramModel {
  const isQualified = new Set(tables.map(({ schema }) => schema)).size > 1;
  const boxes = tables.map((table) => toBox(table, columns, isQualified));
  const byId = new Map(boxes.map((box) => [box.id, box]));
  const links = boxes.flatMap((box) => box.table.foreign_keys.flatMap((key) => toLink(box, key, byId) ?? []));
  return { boxes, links };
}

function toBox(table: DescribedTable, choice: ColumnChoice, isQualified: boolean): DiagramBox {
  const keys = new Set(table.primary_key);
  const foreign = new Set(table.foreign_keys.flatMap(({ columns }) => columns));
  const rows = table.columns
    .map(({ name, type, nullable }) => ({ name, type, isKey: keys.has(name), isForeign: foreign.has(name), nullable }))
    .filter(({ isKey, isForeign }) => choice === "all" || (choice === "keys" && (isKey || isForeign)));
  const title = isQualified ? `${table.schema}.${table.name}` : table.name;
  const longest = Math.max(title.length + 1, ...rows.map(({ name, type }) => name.length + type.length + 2));
  const width = Math.round(Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, longest * CHARACTER_WIDTH + PADDING)));
  const height = HEAD_HEIGHT + (rows.length > 0 ? rows.length * ROW_HEIGHT + FOOT_HEIGHT : 0);
  return { id: nameKey(table), table, title, rows, width, height };
}

/** Returns null if the diagram does not show the target table. */
function toLink(box: DiagramBox, key: DescribedForeignKey, boxes: ReadonlyMap<string, DiagramBox>): DiagramLink | null {
  const target = boxes.get(nameKey(key.target));
  if (!target) return null;
  const { table } = box;
  const rowsOf = (rows: readonly DiagramRow[], names: readonly string[]) =>
    names.map((name) => rows.findIndex((row) => row.name === name)).filter((index) => index >= 0);
  const isUnique = table.indexes.some(
    ({ unique, predicate, columns }) =>
      unique && predicate === null && columns.every((column) => column !== null && key.columns.includes(column)),
  );
  return {
    id: `${box.id} ${key.name}`,
    from: box.id,
    to: target.id,
    key,
    fromRows: rowsOf(box.rows, key.columns),
    toRows: rowsOf(target.rows, key.target_columns),
    isMany: !isUnique,
    isOptional: table.columns.some(({ name, nullable }) => nullable && key.columns.includes(name)),
  };
}

export type Side = "left" | "right";
/** One end of a link, at the border of a box. */
export type LinkEnd = Point & {
  readonly side: Side;
  /** The heights of the first and the last column of a composite key. */
  readonly top: number;
  readonly bottom: number;
};

type PlacedBox = { readonly box: DiagramBox; readonly at: Point };

/** Returns the ends of a link: on the sides of the boxes that face each other, or both on the right. */
export function linkEnds(
  { fromRows, toRows }: DiagramLink,
  from: PlacedBox,
  to: PlacedBox,
): { from: LinkEnd; to: LinkEnd } {
  const rightOf = ({ box, at }: PlacedBox) => at.x + box.width;
  const [fromSide, toSide]: [Side, Side] =
    rightOf(to) + MIN_DISTANCE <= from.at.x
      ? ["left", "right"]
      : rightOf(from) + MIN_DISTANCE <= to.at.x
        ? ["right", "left"]
        : ["right", "right"];
  return { from: endAt(from, fromRows, fromSide), to: endAt(to, toRows, toSide) };
}

const MIN_DISTANCE = 40;

function endAt({ box, at }: PlacedBox, rows: readonly number[], side: Side): LinkEnd {
  const x = side === "left" ? at.x : at.x + box.width;
  const middles = rows.map((row) => at.y + HEAD_HEIGHT + (row + 0.5) * ROW_HEIGHT);
  if (middles.length === 0) middles.push(at.y + HEAD_HEIGHT / 2);
  const [top, bottom] = [Math.min(...middles), Math.max(...middles)];
  return { x, y: (top + bottom) / 2, side, top, bottom };
}

/** Returns the line of a link as an SVG path: a curve that leaves both boxes horizontally. */
export function linkPath(from: LinkEnd, to: LinkEnd): string {
  const bend = (end: LinkEnd, distance: number) => end.x + (end.side === "left" ? -distance : distance);
  if (from.side === to.side) {
    const far = Math.max(from.x, to.x) + LOOP;
    return `M${from.x} ${from.y}C${far} ${from.y} ${far} ${to.y} ${to.x} ${to.y}`;
  }
  const distance = Math.max(MIN_BEND, Math.abs(from.x - to.x) / 2);
  return `M${from.x} ${from.y}C${bend(from, distance)} ${from.y} ${bend(to, distance)} ${to.y} ${to.x} ${to.y}`;
}

const LOOP = 70;
const MIN_BEND = 30;
const FOOT = 10;
const SPREAD = 5;

/** Draws a crow's foot if many rows may refer to one, else a bar; a bracket spans the columns of a composite key. */
export function footPath({ x, y, side, top, bottom }: LinkEnd, isMany: boolean): string {
  const outside = x + (side === "left" ? -FOOT : FOOT);
  const mark = isMany
    ? `M${x} ${y - SPREAD}L${outside} ${y}L${x} ${y + SPREAD}`
    : `M${outside} ${y - SPREAD}V${y + SPREAD}`;
  return top === bottom ? mark : `${mark}M${x} ${top - SPREAD}V${bottom + SPREAD}`;
}

/** Draws a bar for exactly one row, with a circle if there may be none. */
export function targetPath({ x, y, side, top, bottom }: LinkEnd, isOptional: boolean): string {
  const direction = side === "left" ? -1 : 1;
  const bar = x + direction * 6;
  const circle = x + direction * 13;
  const mark = `M${bar} ${y - SPREAD}V${y + SPREAD}`;
  const bracket = top === bottom ? "" : `M${x} ${top - SPREAD}V${bottom + SPREAD}`;
  return isOptional ? `${mark}${bracket}M${circle - 4} ${y}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0` : `${mark}${bracket}`;
}

/** The smallest rectangle around all boxes. */
export function boundsOf(boxes: readonly DiagramBox[], placeOf: (id: string) => Point) {
  let [left, top, right, bottom] = [
    Number.POSITIVE_INFINITY,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
  ];
  for (const { id, width, height } of boxes) {
    const { x, y } = placeOf(id);
    [left, top] = [Math.min(left, x), Math.min(top, y)];
    [right, bottom] = [Math.max(right, x + width), Math.max(bottom, y + height)];
  }
  return boxes.length === 0
    ? { x: 0, y: 0, width: 1, height: 1 }
    : { x: left, y: top, width: right - left, height: bottom - top };
}

export type Bounds = ReturnType<typeof boundsOf>;

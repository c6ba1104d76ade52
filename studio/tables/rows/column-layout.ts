import { isJsonObject, readStoredJson, writeStoredJson } from "../../stored-json.ts";

/** The layout of a table's columns, which the browser stores. */
export type ColumnLayout = {
  /** The names in order; other columns follow. */
  readonly order: readonly string[];
  readonly hidden: readonly string[];
  readonly widths: Readonly<Record<string, number>>;
};

export const INITIAL_LAYOUT: ColumnLayout = { order: [], hidden: [], widths: {} };

export function readLayout(table: string): ColumnLayout {
  return readStoredJson(keyOf(table), isLayout) ?? INITIAL_LAYOUT;
}

export function writeLayout(table: string, layout: ColumnLayout): void {
  const isInitial = layout.order.length + layout.hidden.length + Object.keys(layout.widths).length === 0;
  writeStoredJson(keyOf(table), isInitial ? null : layout);
}

/** Returns the names in the order of the layout. */
export function orderColumns(names: readonly string[], { order }: ColumnLayout): string[] {
  const known = order.filter((name) => names.includes(name));
  return [...known, ...names.filter((name) => !known.includes(name))];
}

export function hideColumn(layout: ColumnLayout, name: string, isHidden: boolean): ColumnLayout {
  const others = layout.hidden.filter((each) => each !== name);
  return { ...layout, hidden: isHidden ? [...others, name] : others };
}

export function resizeColumn(layout: ColumnLayout, name: string, width: number): ColumnLayout {
  return { ...layout, widths: { ...layout.widths, [name]: Math.round(width) } };
}

/** Shows only these columns in this order; null shows all in the order of the table. */
export function chooseColumns(
  layout: ColumnLayout,
  names: readonly string[],
  chosen: readonly string[] | null,
): ColumnLayout {
  return { ...layout, order: chosen ?? [], hidden: chosen ? names.filter((name) => !chosen.includes(name)) : [] };
}

/** Returns the names of the shown columns in order; null if all are shown in the order of the table. */
export function chosenColumns(layout: ColumnLayout, names: readonly string[]): readonly string[] | null {
  const shown = orderColumns(names, layout).filter((name) => !layout.hidden.includes(name));
  return shown.length === names.length && shown.every((name, index) => name === names[index]) ? null : shown;
}

/** Moves a column to the place of another one. */
export function moveColumn(layout: ColumnLayout, names: readonly string[], name: string, place: string): ColumnLayout {
  const ordered = orderColumns(names, layout);
  const to = ordered.indexOf(place);
  const others = ordered.filter((each) => each !== name);
  return { ...layout, order: [...others.slice(0, to), name, ...others.slice(to)] };
}

function keyOf(table: string): string {
  return `studio.columns.${table}`;
}

function isLayout(value: unknown): value is ColumnLayout {
  return isJsonObject(value) && Array.isArray(value.order) && Array.isArray(value.hidden) && isJsonObject(value.widths);
}

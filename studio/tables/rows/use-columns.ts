import { useMemo, useState } from "preact/hooks";
import type { DatabaseDescription, DescribedColumn, DescribedTable } from "../../api/catalog.ts";
import { valueNamed } from "../../api/named-values.ts";
import type { GridColumn } from "../../components/grid-columns.ts";
import {
  type ColumnLayout,
  chooseColumns,
  chosenColumns,
  hideColumn,
  INITIAL_LAYOUT,
  moveColumn,
  orderColumns,
  readLayout,
  resizeColumn,
  writeLayout,
} from "./column-layout.ts";
import { isNumeric, isSortable, readableColumns } from "./table-access.ts";

/** The columns of a table in the user's layout, and the functions that change the layout. */
export type TableColumns = {
  /** All columns that the role may read, in order. */
  readonly all: readonly DescribedColumn[];
  readonly shown: readonly GridColumn[];
  readonly byName: ReadonlyMap<string, DescribedColumn>;
  /** The shown columns in order; null if all are shown in the order of the table. */
  readonly chosen: readonly string[] | null;
  isHidden(name: string): boolean;
  hide(name: string, isHidden: boolean): void;
  hideAll(isHidden: boolean): void;
  resize(name: string, width: number): void;
  move(name: string, place: string): void;
  choose(chosen: readonly string[] | null): void;
  reset(): void;
};

export function useColumns(catalog: DatabaseDescription, role: string, table: DescribedTable): TableColumns {
  const storageKey = `${table.schema}.${table.name}`;
  const [layout, setLayout] = useState(() => readLayout(storageKey));
  return useMemo(() => {
    const readable = readableColumns(catalog, role, table);
    const names = readable.map(({ name }) => name);
    const byName = new Map(readable.map((column) => [column.name, column]));
    const all = orderColumns(names, layout).map((name) => byName.get(name)!);
    const change = (make: (before: ColumnLayout) => ColumnLayout) =>
      setLayout((before) => {
        const after = make(before);
        writeLayout(storageKey, after);
        return after;
      });
    return {
      all,
      byName,
      chosen: chosenColumns(layout, names),
      shown: all.filter(({ name }) => !layout.hidden.includes(name)).map((column) => toGridColumn(column, layout)),
      isHidden: (name) => layout.hidden.includes(name),
      hide: (name, isHidden) => change((before) => hideColumn(before, name, isHidden)),
      hideAll: (isHidden) => change((before) => ({ ...before, hidden: isHidden ? names : [] })),
      resize: (name, width) => change((before) => resizeColumn(before, name, width)),
      move: (name, place) => change((before) => moveColumn(before, names, name, place)),
      choose: (chosen) => change((before) => chooseColumns(before, names, chosen)),
      reset: () => change(() => INITIAL_LAYOUT),
    };
  }, [catalog, role, table, layout]);
}

function toGridColumn(column: DescribedColumn, { widths }: ColumnLayout): GridColumn {
  return {
    id: column.name,
    title: column.name,
    detail: shortType(column.type),
    width: valueNamed(widths, column.name) ?? initialWidth(column),
    align: isNumeric(column) ? "end" : "start",
    isSortable: isSortable(column),
  };
}

function shortType(type: string): string {
  return type
    .replace(/^public\./, "")
    .replace(/^timestamp with time zone/, "timestamptz")
    .replace(/^timestamp without time zone/, "timestamp");
}

const WIDTHS: Readonly<Record<string, number>> = {
  boolean: 90,
  smallint: 90,
  integer: 100,
  bigint: 130,
  date: 110,
  uuid: 290,
  text: 220,
  jsonb: 260,
  json: 260,
  "timestamp with time zone": 270,
  "timestamp without time zone": 240,
};
const CHARACTER_WIDTH = 8;

function initialWidth({ name, type, base_type: base }: DescribedColumn): number {
  const header = (name.length + Math.min(shortType(type).length, 11)) * CHARACTER_WIDTH + 40;
  return Math.min(320, Math.max(WIDTHS[base] ?? 150, header));
}

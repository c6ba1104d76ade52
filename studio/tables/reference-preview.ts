import { useEffect, useState } from "preact/hooks";
import { type DatabaseDescription, type DescribedTable, shortName } from "../api/catalog.ts";
import type { TableRow } from "../api/rest-query.ts";
import { readRows } from "../api/rows.ts";
import { viewedRole } from "../api/session.ts";
import { useLoaded } from "../api/use-loaded.ts";
import type { GridCell } from "../components/grid-keys.ts";
import { Loading } from "../components/page.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import { cellContent, cutText } from "./cell-content.ts";
import { addressOf, foreignKeyOf, type Reference, referencedRow } from "./references.ts";
import { formatFilter } from "./rows/filters.ts";
import type { RowWindows } from "./rows/row-windows.ts";
import { readableColumns } from "./rows/table-access.ts";
import type { TableColumns } from "./rows/use-columns.ts";

type ReferencePreviewProps = {
  readonly catalog: DatabaseDescription;
  readonly table: DescribedTable;
  readonly windows: RowWindows;
  readonly columns: TableColumns;
  /** The element that contains the grid. */
  readonly pane: { readonly current: HTMLElement | null };
  readonly active: GridCell | null;
};

type ShownReference = { readonly reference: Reference; readonly anchor: DOMRect };

const DELAY_MILLISECONDS = 350;
const MAX_SHOWN = 12;

/** The row that a foreign key refers to, shown while the pointer rests on its cell, or the cell is active. */
export function ReferencePreview(props: ReferencePreviewProps) {
  const { catalog, table, windows, columns, pane, active } = props;
  const [shown, setShown] = useState<ShownReference | null>(null);
  useEffect(() => {
    const element = pane.current!;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const show = (cell: HTMLElement) => {
      const row = windows.rowAt(Number(cell.closest<HTMLElement>("[data-row]")?.dataset.row));
      const column = columns.shown[Number(cell.dataset.column)];
      const key = column && foreignKeyOf(table, column.id);
      const reference = key && row && referencedRow(catalog, key, row);
      setShown(reference ? { reference, anchor: cell.getBoundingClientRect() } : null);
    };
    const later = (cell: HTMLElement | null | undefined) => {
      clearTimeout(timer);
      if (cell?.querySelector(".cell-link"))
        timer = setTimeout(() => cell.isConnected && show(cell), DELAY_MILLISECONDS);
      else setShown(null);
    };
    const hover = ({ target }: Event) => {
      if (!(target as Element).closest(".reference-preview"))
        later((target as Element).closest<HTMLElement>("[data-column]"));
    };
    const leave = () => later(null);
    const onEscape = ({ key }: KeyboardEvent) => key === "Escape" && leave();
    later(
      active && element.contains(document.activeElement)
        ? element.querySelector<HTMLElement>(`[data-row="${active.row}"] [data-column="${active.column}"]`)
        : null,
    );
    element.addEventListener("pointerover", hover);
    element.addEventListener("pointerleave", leave);
    element.addEventListener("scroll", leave, true);
    element.addEventListener("keydown", onEscape);
    return () => {
      clearTimeout(timer);
      element.removeEventListener("pointerover", hover);
      element.removeEventListener("pointerleave", leave);
      element.removeEventListener("scroll", leave, true);
      element.removeEventListener("keydown", onEscape);
    };
  }, [catalog, table, windows, columns, active]);
  return shown && html`<${ReferenceCard} key=${addressOf(shown.reference)} catalog=${catalog} ...${shown} />`;
}

const CARD_WIDTH = 320;
const CARD_HEIGHT = 300;

type ReferenceCardProps = ShownReference & { readonly catalog: DatabaseDescription };

function ReferenceCard({ catalog, reference, anchor }: ReferenceCardProps) {
  const { table, filters } = reference;
  const readable = table.exposed ? readableColumns(catalog, viewedRole()!, table) : [];
  const columns = readable.map(({ name }) => name).slice(0, MAX_SHOWN);
  const query = { schema: table.schema, table: table.name, columns, filters: filters.map(formatFilter) };
  const row = useLoaded(
    async (signal) => (columns.length > 0 ? readRows({ ...query, order: "", limit: 1, offset: 0 }, signal) : null),
    [],
  );
  const isBelow = anchor.bottom + CARD_HEIGHT < innerHeight;
  const place = {
    left: `${Math.max(8, Math.min(anchor.left, innerWidth - CARD_WIDTH - 8))}px`,
    ...(isBelow ? { top: `${anchor.bottom}px` } : { bottom: `${innerHeight - anchor.top}px` }),
  };
  const [found] = row.value?.rows ?? [];
  return html`
    <div class="reference-preview" role="tooltip" style=${place}>
      <a href=${addressOf(reference)} tabindex="-1">${shortName(table)}</a>
      ${row.error && html`<p class="bad">${row.error.message}</p>`}
      ${row.isLoading && html`<${Loading} />`}
      ${found && html`<${RowValues} table=${table} row=${found} />`}
      ${!row.isLoading && !row.error && !found && html`<p class="quiet">${texts.tables.hiddenReference}</p>`}
    </div>
  `;
}

function RowValues({ table, row }: { readonly table: DescribedTable; readonly row: TableRow }) {
  return html`
    <dl>
      ${table.columns
        .filter(({ name }) => Object.hasOwn(row, name))
        .map(
          (column) =>
            html`<div key=${column.name}><dt>${column.name}</dt><dd>${cellContent(row[column.name] && cutText(row[column.name]!, 80), column)}</dd></div>`,
        )}
    </dl>
  `;
}

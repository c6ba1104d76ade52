import { useEffect, useId, useRef, useState } from "preact/hooks";
import { quoteField, quoteValue } from "../../api/field-names.ts";
import type { QueryParameter, TableRow } from "../../api/rest-query.ts";
import { readRows } from "../../api/rows.ts";
import { useLoaded } from "../../api/use-loaded.ts";
import { Dialog } from "../../components/dialog.ts";
import { TextField } from "../../components/field.ts";
import { Notice } from "../../components/notice.ts";
import { useDelayed } from "../../components/use-delayed.ts";
import { html } from "../../html.ts";
import { texts } from "../../texts.ts";
import type { EditedTable } from "./edited-table.ts";
import { findValueProblem, valueKind } from "./value-kind.ts";

export type ReferencePickerProps = {
  /** The referenced table, with the columns that the caller may read. */
  readonly table: EditedTable;
  /** The columns that the foreign key refers to. */
  readonly keys: readonly string[];
  readonly onPick: (row: TableRow) => void;
  readonly onClose: () => void;
};

const MAX_ROWS = 50;
const MAX_SHOWN_COLUMNS = 4;

/** Searches the texts and keys of a table: arrows choose a row, Enter takes it. */
export function ReferencePicker({ table, keys, onPick, onClose }: ReferencePickerProps) {
  const [search, setSearch] = useState("");
  const [current, setCurrent] = useState(0);
  const query = useDelayed(search);
  const listId = useId();
  const columns = shownColumns(table, keys);
  const found = useLoaded(
    async (signal) => {
      const filters = searchFilters(table, keys, query.trim());
      const order = keys.map(quoteField).join(",");
      const names = [...new Set([...keys, ...columns])];
      const source = { schema: table.schema, table: table.name };
      return readRows({ ...source, columns: names, filters, order, limit: MAX_ROWS + 1, offset: 0 }, signal);
    },
    [query],
  );
  useEffect(() => setCurrent(0), [found.value]);
  const rows = found.value?.rows ?? [];
  const shown = rows.slice(0, MAX_ROWS);
  const handleKey = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0) setCurrent(Math.min(shown.length - 1, Math.max(0, current + step)));
    else if (event.key === "Enter" && shown[current]) onPick(shown[current]);
    else return;
    event.preventDefault();
  };
  return html`
    <${Dialog} title=${texts.editing.chooseFrom(table.name)} size="wide" onClose=${onClose}>
      <div role="search" onKeyDown=${handleKey}>
        <${TextField} label=${texts.editing.searchRows} type="search" value=${search} onInput=${setSearch} autofocus />
      </div>
      ${found.error && html`<${Notice} kind="error" error=${found.error} onRetry=${found.reload} />`}
      <div id=${listId} class="editing-picker" role="listbox" aria-label=${table.name} aria-busy=${found.isLoading} tabindex="0" onKeyDown=${handleKey}>
        ${shown.map(
          (row, index) =>
            html`<${PickerRow} key=${index} row=${row} columns=${columns} isCurrent=${index === current} onPick=${() => onPick(row)} />`,
        )}
      </div>
      ${found.value && rows.length === 0 && html`<p class="quiet">${texts.editing.noRows}</p>`}
      ${rows.length > MAX_ROWS && html`<p class="quiet">${texts.editing.moreRows}</p>`}
    <//>
  `;
}

type PickerRowProps = {
  readonly row: TableRow;
  readonly columns: readonly string[];
  readonly isCurrent: boolean;
  readonly onPick: () => void;
};

function PickerRow({ row, columns, isCurrent, onPick }: PickerRowProps) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (isCurrent) element.current!.scrollIntoView({ block: "nearest" });
  }, [isCurrent]);
  return html`
    <div ref=${element} role="option" class="editing-picker-row" aria-selected=${isCurrent} onClick=${onPick}>
      ${columns.map((name) => html`<span key=${name} title=${name}>${row[name] ?? texts.editing.isNull}</span>`)}
    </div>
  `;
}

/** Returns the key, and the most readable columns: short texts. */
function shownColumns({ columns }: EditedTable, keys: readonly string[]): readonly string[] {
  const isReadable = (name: string) => columns.some((column) => column.name === name);
  const named = columns.filter((column) => valueKind(column) === "text").map(({ name }) => name);
  return [...new Set([...keys.filter(isReadable), ...named])].slice(0, MAX_SHOWN_COLUMNS);
}

function searchFilters(table: EditedTable, keys: readonly string[], search: string): QueryParameter[] {
  if (search === "") return [];
  const pattern = quoteValue(`*${search.replace(/[\\%_*]/g, "\\$&")}*`);
  const conditions = table.columns.flatMap((column) => {
    if (valueKind(column) === "text") return [`${quoteField(column.name)}.ilike.${pattern}`];
    const isKey = keys.includes(column.name) && findValueProblem(search, column) === null;
    return isKey ? [`${quoteField(column.name)}.eq.${quoteValue(search)}`] : [];
  });
  return conditions.length > 0 ? [["or", `(${conditions.join(",")})`]] : [];
}

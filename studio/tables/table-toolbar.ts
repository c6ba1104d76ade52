import { useState } from "preact/hooks";
import type { DescribedTable } from "../api/catalog.ts";
import { Button, IconButton } from "../components/button.ts";
import { Dialog } from "../components/dialog.ts";
import { Checkbox, TextField } from "../components/field.ts";
import { useGridRows } from "../components/grid-rows.ts";
import { lazy } from "../components/lazy.ts";
import { PageHeader } from "../components/page.ts";
import { type Children, html } from "../html.ts";
import { texts } from "../texts.ts";
import type { RowsState } from "./rows/filters.ts";
import type { RowWindows } from "./rows/row-windows.ts";
import type { TableColumns } from "./rows/use-columns.ts";

const ViewsDialog = lazy(async () => (await import("./views-dialog.ts")).ViewsDialog);

type TableToolbarProps = {
  readonly table: DescribedTable;
  readonly windows: RowWindows;
  readonly columns: TableColumns;
  readonly state: RowsState;
  readonly showsDetails: boolean;
  readonly onDetails: () => void;
  readonly onAddFilter: (column: string) => void;
  /** The further actions. */
  readonly children?: Children;
};

export function TableToolbar(props: TableToolbarProps) {
  const { table, windows, columns, state, showsDetails, onDetails, onAddFilter, children } = props;
  const [choosesColumns, setChoosesColumns] = useState(false);
  const [showsViews, setShowsViews] = useState(false);
  const [first] = columns.all;
  return html`
    <${PageHeader} title=${html`<span class="table-schema">${table.schema}.</span>${table.name}`}>
      <${RowCount} windows=${windows} />
      ${first && html`<${Button} kind="quiet" class="compact" icon="filter" onClick=${() => onAddFilter(first.name)}><span>${texts.tables.filter}</span><//>`}
      <${Button} kind="quiet" class="compact" icon="column" onClick=${() => setChoosesColumns(true)}><span>${texts.tables.columns(columns.shown.length, columns.all.length)}</span><//>
      <${Button} kind="quiet" class="compact" icon="table" onClick=${() => setShowsViews(true)}><span>${texts.tables.views}</span><//>
      <${Button} kind="quiet" class="compact" icon="eye" pressed=${showsDetails} onClick=${onDetails}><span>${texts.tables.details}</span><//>
      <${IconButton} icon="refresh" label=${texts.tables.refresh} onClick=${() => refresh(windows)} />
      ${children}
    <//>
    ${choosesColumns && html`<${ColumnsDialog} columns=${columns} onClose=${() => setChoosesColumns(false)} />`}
    ${showsViews && html`<${ViewsDialog} table=${table} columns=${columns} state=${state} onClose=${() => setShowsViews(false)} />`}
  `;
}

function refresh(windows: RowWindows): void {
  windows.refresh();
  void windows.countRows();
}

/** The number of rows; a click on an estimate counts them. */
function RowCount({ windows }: { readonly windows: RowWindows }) {
  useGridRows(windows);
  const { rowCount, isExact } = windows;
  if (isExact) return html`<span class="row-count quiet" aria-live="polite">${texts.tables.rowCount(rowCount)}</span>`;
  return html`
    <${Button} kind="quiet" class="row-count" title=${texts.tables.countExactly} onClick=${() => windows.countRows()}>
      ${texts.tables.estimatedRowCount(rowCount)}
    <//>
  `;
}

/** Chooses the shown columns. */
function ColumnsDialog({ columns, onClose }: { readonly columns: TableColumns; readonly onClose: () => void }) {
  const [search, setSearch] = useState("");
  const wanted = search.trim().toLowerCase();
  const actions = html`
    <${Button} onClick=${columns.reset}>${texts.tables.resetColumns}<//>
    <${Button} onClick=${() => columns.hideAll(true)}>${texts.tables.hideAll}<//>
    <${Button} onClick=${() => columns.hideAll(false)}>${texts.tables.showAll}<//>
  `;
  return html`
    <${Dialog} title=${texts.tables.columnsTitle} onClose=${onClose} actions=${actions}>
      <div class="stack">
        <${TextField} label=${texts.tables.searchColumns} hideLabel type="search" placeholder=${texts.tables.searchColumns} value=${search} onInput=${setSearch} />
        <ul class="column-choices">
          ${columns.all
            .filter(({ name }) => name.toLowerCase().includes(wanted))
            .map(
              ({ name, type, comment }) => html`
                <li key=${name} title=${comment ?? name}>
                  <${Checkbox} label=${name} checked=${!columns.isHidden(name)} onChange=${(isShown: boolean) => columns.hide(name, !isShown)} />
                  <span class="quiet mono">${type}</span>
                </li>
              `,
            )}
        </ul>
      </div>
    <//>
  `;
}

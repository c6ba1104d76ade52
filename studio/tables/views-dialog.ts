import { useState } from "preact/hooks";
import type { SharedView } from "#operations/admin-types";
import type { DescribedTable } from "../api/catalog.ts";
import { useChanges, useLoaded } from "../api/use-loaded.ts";
import { Button, IconButton } from "../components/button.ts";
import { Dialog } from "../components/dialog.ts";
import { TextField } from "../components/field.ts";
import { Notice } from "../components/notice.ts";
import { Loading } from "../components/page.ts";
import { html } from "../html.ts";
import { location, navigate } from "../router.ts";
import { formatTime } from "../texts/format.ts";
import { texts } from "../texts.ts";
import { formatRowsState, type RowsState } from "./rows/filters.ts";
import type { TableColumns } from "./rows/use-columns.ts";
import { deleteSharedView, listSharedViews, shareView } from "./shared-views.ts";

type ViewsDialogProps = {
  readonly table: DescribedTable;
  readonly columns: TableColumns;
  readonly state: RowsState;
  readonly onClose: () => void;
};

/** The views of a table that administrators share; the filters, the order and the columns that are shown can be one. */
export function ViewsDialog({ table, columns, state, onClose }: ViewsDialogProps) {
  const shared = useLoaded((signal) => listSharedViews(table, signal), [table.schema, table.name]);
  const { failure, change } = useChanges(shared);
  const [name, setName] = useState("");
  const views = shared.value ?? [];
  const open = (view: SharedView) => {
    onClose();
    columns.choose(view.columns);
    navigate(location.get().path + (view.query && `?${view.query}`));
  };
  const save = (event: Event) => {
    event.preventDefault();
    void change(shareView(table, { name, query: formatRowsState(state), columns: columns.chosen }));
  };
  return html`
    <${Dialog} title=${texts.tables.viewsOf(table.name)} onClose=${onClose}>
      <div class="stack">
        ${failure && html`<${Notice} kind="error" error=${failure} />`}
        ${!shared.value && shared.isLoading && html`<${Loading} />`}
        ${shared.value?.length === 0 && html`<p class="quiet">${texts.tables.noViews}</p>`}
        <ul class="plain-list shared-views">
          ${views.map((view) => html`<${ViewItem} key=${view.name} view=${view} onOpen=${() => open(view)} onDelete=${() => change(deleteSharedView(table, view.name))} />`)}
        </ul>
        <form class="stack" onSubmit=${save}>
          <${TextField} label=${texts.tables.viewName} hint=${texts.tables.viewHint} value=${name} onInput=${setName} required />
          <div class="row">
            <${Button} kind="primary" type="submit">${views.some((view) => view.name === name.trim()) ? texts.tables.replaceView : texts.tables.saveView}<//>
          </div>
        </form>
      </div>
    <//>
  `;
}

type ViewItemProps = {
  readonly view: SharedView;
  readonly onOpen: () => void;
  readonly onDelete: () => void;
};

function ViewItem({ view, onOpen, onDelete }: ViewItemProps) {
  return html`
    <li>
      <${Button} onClick=${onOpen}>${view.name}<//>
      <span class="quiet">${formatTime(view.saved_at)}</span>
      ${view.may_change && html`<${IconButton} icon="trash" size="small" label=${texts.tables.deleteView(view.name)} onClick=${onDelete} />`}
    </li>
  `;
}

import { useState } from "preact/hooks";
import { Button } from "../components/button.ts";
import { Dialog } from "../components/dialog.ts";
import { Checkbox, TextField } from "../components/field.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import type { TableColumns } from "./use-columns.ts";

/** Chooses which columns are shown. */
export function ColumnsDialog({ columns, onClose }: { readonly columns: TableColumns; readonly onClose: () => void }) {
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

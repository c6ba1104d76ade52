import { IconButton } from "../components/button.ts";
import { html } from "../html.ts";
import { useStore } from "../store.ts";
import { texts } from "../texts.ts";
import { addTab, closeTab, openTabs, type QueryTab } from "./stored-queries.ts";

/** The open queries: one is shown. */
export function QueryTabs() {
  const open = useStore(openTabs);
  return html`
    <nav class="sql-tabs" aria-label=${texts.sql.queries}>
      <ul>
        ${open.tabs.map((tab, index) => {
          const name = tabName(tab, index);
          return html`
            <li key=${tab.id} class=${tab.id === open.current ? "current" : ""}>
              <button
                type="button"
                aria-current=${tab.id === open.current ? "true" : undefined}
                onClick=${() => openTabs.set({ ...open, current: tab.id })}
              >
                ${name}
              </button>
              <${IconButton} icon="close" size="small" label=${texts.sql.closeQuery(name)} onClick=${() => openTabs.set(closeTab(open, tab.id))} />
            </li>
          `;
        })}
      </ul>
      <${IconButton} icon="plus" size="small" label=${texts.sql.newQuery} onClick=${() => openTabs.set(addTab(open))} />
    </nav>
  `;
}

function tabName({ name }: QueryTab, index: number): string {
  return name || texts.sql.queryName(index + 1);
}

import { useState } from "preact/hooks";
import type { SavedQuery } from "#operations/admin-types";
import { useChanges, useLoaded } from "../api/use-loaded.ts";
import { Button, IconButton } from "../components/button.ts";
import { Dialog } from "../components/dialog.ts";
import { TextField } from "../components/field.ts";
import { Notice } from "../components/notice.ts";
import { type Children, html } from "../html.ts";
import { useStore } from "../store.ts";
import { formatDuration, formatTime } from "../texts/format.ts";
import { texts } from "../texts.ts";
import {
  addTab,
  closeTab,
  deleteSharedQuery,
  type HistoryEntry,
  listSharedQueries,
  openTabs,
  type QueryTab,
  queryHistory,
  savedQueries,
  saveQuery,
  searchHistory,
  shareQuery,
} from "./stored-queries.ts";

const SHOWN_ENTRIES = 100;

type ListProps = {
  readonly onClose: () => void;
  readonly onOpen: (text: string, name?: string) => void;
  readonly onRun: (text: string) => void;
};

/** The queries that were run in this browser. */
export function HistoryDialog({ onClose, onOpen, onRun }: ListProps) {
  const entries = useStore(queryHistory);
  const [words, setWords] = useState("");
  const shown = searchHistory(entries, words).slice(0, SHOWN_ENTRIES);
  const clear = () => queryHistory.set(entries.filter(({ isPinned }) => isPinned));
  const change = (id: string, isPinned: boolean) =>
    queryHistory.set(entries.map((entry) => (entry.id === id ? { ...entry, isPinned } : entry)));
  const remove = (id: string) => queryHistory.set(entries.filter((entry) => entry.id !== id));
  const actions = html`<${Button} icon="trash" onClick=${clear}>${texts.sql.clearHistory}<//>`;
  return html`
    <${Dialog} title=${texts.sql.history} size="wide" onClose=${onClose} actions=${actions}>
      <${TextField} label=${texts.sql.searchHistory} type="search" value=${words} onInput=${setWords} autofocus />
      ${shown.length === 0 && html`<p class="quiet">${texts.sql.noHistory}</p>`}
      <ul class="sql-queries">
        ${shown.map(
          (entry) => html`
            <li key=${entry.id}>
              <pre tabindex="0" aria-label=${texts.sql.statements} role="region"><code>${entry.text}</code></pre>
              <p class=${entry.error ? "bad" : "quiet"}>
                ${formatTime(entry.at)} ${texts.sql.ranAs(entry.as, formatDuration(entry.milliseconds))} ${entry.error ?? ""}
              </p>
              <div class="row">
                <${Button} size="small" onClick=${() => onOpen(entry.text)}>${texts.sql.open}<//>
                <${Button} size="small" icon="play" onClick=${() => onRun(entry.text)}>${texts.sql.openAgain}<//>
                <${Button} size="small" pressed=${entry.isPinned} onClick=${() => change(entry.id, !entry.isPinned)}>
                  ${pinLabel(entry)}
                <//>
                <${IconButton} icon="trash" size="small" label=${texts.sql.remove} onClick=${() => remove(entry.id)} />
              </div>
            </li>
          `,
        )}
      </ul>
    <//>
  `;
}

function pinLabel({ isPinned }: HistoryEntry): string {
  return isPinned ? texts.sql.unpin : texts.sql.pin;
}

/** The saved queries of this browser, and those that administrators share. */
export function SavedDialog({ onClose, ...events }: ListProps) {
  const saved = useStore(savedQueries);
  const shared = useLoaded((signal) => listSharedQueries(signal), []);
  const { failure, change } = useChanges(shared);
  const remove = (name: string) => savedQueries.set(saved.filter((query) => query.name !== name));
  const share = (query: SavedQuery) =>
    html`<${Button} size="small" onClick=${() => change(shareQuery(query))}>${texts.sql.share}<//>`;
  return html`
    <${Dialog} title=${texts.sql.saved} size="wide" onClose=${onClose}>
      ${failure && html`<${Notice} kind="error" error=${failure} />`}
      <h3>${texts.sql.ofBrowser}</h3>
      ${saved.length === 0 && html`<p class="quiet">${texts.sql.noSaved}</p>`}
      <${QueryList} queries=${saved} share=${share} onRemove=${remove} ...${events} />
      <h3>${texts.sql.shared}</h3>
      ${shared.value?.length === 0 && html`<p class="quiet">${texts.sql.noShared}</p>`}
      <${QueryList} queries=${shared.value ?? []} onRemove=${(name: string) => change(deleteSharedQuery(name))} ...${events} />
    <//>
  `;
}

type QueryListProps = Omit<ListProps, "onClose"> & {
  readonly queries: readonly SavedQuery[];
  readonly share?: (query: SavedQuery) => Children;
  readonly onRemove: (name: string) => void;
};

function QueryList({ queries, share, onOpen, onRun, onRemove }: QueryListProps) {
  return html`
    <ul class="sql-queries">
      ${queries.map(
        ({ name, text }) => html`
          <li key=${name}>
            <h4>${name}</h4>
            <pre tabindex="0" aria-label=${name} role="region"><code>${text}</code></pre>
            <div class="row">
              <${Button} size="small" onClick=${() => onOpen(text, name)}>${texts.sql.open}<//>
              <${Button} size="small" icon="play" onClick=${() => onRun(text)}>${texts.sql.openAgain}<//>
              ${share?.({ name, text })}
              <${IconButton} icon="trash" size="small" label=${texts.sql.remove} onClick=${() => onRemove(name)} />
            </div>
          </li>
        `,
      )}
    </ul>
  `;
}

type SaveDialogProps = {
  readonly name: string;
  readonly text: string;
  readonly onClose: () => void;
  readonly onSaved: (name: string) => void;
};

export function SaveDialog({ name: initial, text, onClose, onSaved }: SaveDialogProps) {
  const [name, setName] = useState(initial);
  const save = (event: Event) => {
    event.preventDefault();
    if (name.trim() === "") return;
    savedQueries.set(saveQuery(savedQueries.get(), { name: name.trim(), text }));
    onSaved(name.trim());
  };
  return html`
    <${Dialog} title=${texts.sql.saveAs} onClose=${onClose}>
      <form class="stack" onSubmit=${save}>
        <${TextField} label=${texts.sql.name} value=${name} onInput=${setName} required autofocus />
        <div class="row"><${Button} kind="primary" type="submit">${texts.sql.save}<//></div>
      </form>
    <//>
  `;
}

/** The tabs of the open queries; one is shown. */
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

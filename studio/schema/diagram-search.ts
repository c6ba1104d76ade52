import { Button } from "../components/button.ts";
import { TextField } from "../components/field.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import type { DiagramBox } from "./diagram-model.ts";

/** The text of the search, and the place among the found tables of the one that is shown; null if all are. */
export type TableSearch = { readonly text: string; readonly current: number | null };

export const NO_SEARCH: TableSearch = { text: "", current: null };

type SearchProps = {
  readonly boxes: readonly DiagramBox[];
  readonly search: TableSearch;
  readonly onSearch: (search: TableSearch) => void;
  /** Shows tables as large as they fit. */
  readonly onShow: (boxes: readonly DiagramBox[]) => void;
};

/** Finds tables of the diagram by a part of their name: Enter shows one after the other, the button all of them. */
export function DiagramSearch({ boxes, search, onSearch, onShow }: SearchProps) {
  const { text, current } = search;
  const found = searchBoxes(boxes, text);
  const show = (next: TableSearch) => {
    onSearch(next);
    onShow(markedBoxes(boxes, next));
  };
  const press = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || found.length === 0) return;
    event.preventDefault();
    const step = event.shiftKey ? found.length - 1 : 1;
    const next = current === null ? 0 : (current + step) % found.length;
    show({ text, current: next });
  };
  return html`
    <div class="schema-search" role="search">
      <${TextField} label=${texts.schema.findTable} hideLabel type="search" placeholder=${texts.schema.findTable} value=${text} onInput=${(words: string) => onSearch({ text: words, current: null })} onKeyDown=${press} />
      <${Button} size="small" disabled=${found.length === 0} onClick=${() => show({ text, current: null })}>${texts.schema.zoomToFound}<//>
      <span class="quiet" role="status">${text.trim() !== "" && texts.schema.foundTables(current, found.length)}</span>
    </div>
  `;
}

/** Returns the boxes that the search marks: one that is shown, or all that it finds. */
export function markedBoxes(boxes: readonly DiagramBox[], { text, current }: TableSearch): readonly DiagramBox[] {
  const found = searchBoxes(boxes, text);
  return current === null ? found : found.slice(current, current + 1);
}

/** Returns the boxes whose name contains the text, those that begin with it first. */
export function searchBoxes(boxes: readonly DiagramBox[], text: string): readonly DiagramBox[] {
  const part = text.trim().toLowerCase();
  if (part === "") return [];
  const rankOf = ({ table: { name } }: DiagramBox) => {
    const lower = name.toLowerCase();
    return lower === part ? 0 : lower.startsWith(part) ? 1 : 2;
  };
  return boxes
    .filter(({ title }) => title.toLowerCase().includes(part))
    .sort((one, other) => rankOf(one) - rankOf(other) || one.title.localeCompare(other.title, "en"));
}

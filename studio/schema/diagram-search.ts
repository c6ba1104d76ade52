import { useState } from "preact/hooks";
import { Button } from "../components/button.ts";
import { TextField } from "../components/field.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import type { DiagramBox } from "./diagram-model.ts";

type SearchProps = {
  readonly boxes: readonly DiagramBox[];
  /** Marks tables. */
  readonly onFind: (ids: readonly string[]) => void;
  /** Shows tables as large as they fit. */
  readonly onShow: (boxes: readonly DiagramBox[]) => void;
};

/** Finds tables of the diagram by a part of their name: Enter shows one after the other, the button all of them. */
export function DiagramSearch({ boxes, onFind, onShow }: SearchProps) {
  const [text, setText] = useState("");
  const [current, setCurrent] = useState<number | null>(null);
  const found = searchBoxes(boxes, text);
  const search = (words: string) => {
    setText(words);
    setCurrent(null);
    onFind(searchBoxes(boxes, words).map(({ id }) => id));
  };
  const show = (index: number | null, shown: readonly DiagramBox[]) => {
    setCurrent(index);
    onFind(shown.map(({ id }) => id));
    onShow(shown);
  };
  const press = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || found.length === 0) return;
    event.preventDefault();
    const step = event.shiftKey ? found.length - 1 : 1;
    const next = current === null ? 0 : (current + step) % found.length;
    show(next, [found[next]!]);
  };
  return html`
    <div class="schema-search" role="search">
      <${TextField} label=${texts.schema.findTable} hideLabel type="search" placeholder=${texts.schema.findTable} value=${text} onInput=${search} onKeyDown=${press} />
      <${Button} size="small" disabled=${found.length === 0} onClick=${() => show(null, found)}>${texts.schema.zoomToFound}<//>
      <span class="quiet" role="status">${text.trim() !== "" && texts.schema.foundTables(current, found.length)}</span>
    </div>
  `;
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

import type { FunctionComponent } from "preact";
import { useEffect, useState } from "preact/hooks";
import { IconButton } from "../components/button.ts";
import { Dialog } from "../components/dialog.ts";
import { html } from "../html.ts";
import { navigate, pathTo } from "../router.ts";
import { makeStore, useStore } from "../store.ts";
import { texts } from "../texts.ts";
import { pages } from "./pages.ts";

type OpenedDialog = "palette" | "help" | null;

const opened = makeStore<OpenedDialog>(null);
const SEQUENCE_MS = 1500;

/** The elements in which keys are text, or move within a grid. */
const TYPING = "input, textarea, select, [contenteditable], [role=grid], dialog";

/** The shortcuts that work on all pages, and the dialogs that they open. */
export function Shortcuts() {
  const dialog = useStore(opened);
  useEffect(() => {
    const onKeyDown = makeKeyListener();
    document.addEventListener("keydown", onKeyDown);
    return () => document.removeEventListener("keydown", onKeyDown);
  }, []);
  const close = () => opened.set(null);
  if (dialog === "palette") return html`<${LoadedPalette} onClose=${close} />`;
  return dialog === "help" ? html`<${ShortcutHelp} onClose=${close} />` : null;
}

/** Buttons that open the same dialogs. */
export function ShortcutButtons() {
  return html`
    <${IconButton} icon="search" label=${texts.frame.openPalette} onClick=${() => opened.set("palette")} />
    <${IconButton} icon="help" label=${texts.frame.shortcuts} onClick=${() => opened.set("help")} />
  `;
}

function makeKeyListener(): (event: KeyboardEvent) => void {
  let goPressedAt = Number.NEGATIVE_INFINITY;
  return (event) => {
    const isPalette = (event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k";
    if (isPalette && opened.get() === null) {
      event.preventDefault();
      opened.set("palette");
      return;
    }
    const isTyping = event.target instanceof Element && event.target.closest(TYPING) !== null;
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = event.timeStamp - goPressedAt < SEQUENCE_MS ? pages[Number(event.key) - 1] : undefined;
    goPressedAt = event.key === "g" ? event.timeStamp : Number.NEGATIVE_INFINITY;
    if (page) navigate(pathTo(page.name));
    else if (event.key === "?") opened.set("help");
    else if (event.key === "/") focusSearch(event);
  };
}

function focusSearch(event: KeyboardEvent): void {
  const field = document.querySelector<HTMLElement>("#content input[type=search]");
  if (!field) return;
  event.preventDefault();
  field.focus();
}

/** Loads the module of the palette when it is opened, since few need it at first. */
function LoadedPalette({ onClose }: { readonly onClose: () => void }) {
  const [palette, setPalette] = useState<{ readonly Content: FunctionComponent<{ onClose: () => void }> } | null>(null);
  useEffect(() => {
    import("./command-palette.ts").then(({ CommandPalette }) => setPalette({ Content: CommandPalette }), onClose);
  }, []);
  return palette && html`<${palette.Content} onClose=${onClose} />`;
}

function ShortcutHelp({ onClose }: { readonly onClose: () => void }) {
  return html`
    <${Dialog} title=${texts.frame.shortcuts} onClose=${onClose}>
      <table class="plain-table">
        <tbody>
          ${texts.frame.shortcutList.map(
            ([keys, effect]) => html`<tr key=${keys}><th scope="row"><kbd>${keys}</kbd></th><td>${effect}</td></tr>`,
          )}
          ${pages.map(
            ({ name, title }, index) =>
              html`<tr key=${name}><th scope="row"><kbd>${`g ${index + 1}`}</kbd></th><td>${title}</td></tr>`,
          )}
        </tbody>
      </table>
    <//>
  `;
}

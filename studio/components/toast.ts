import { html } from "../html.ts";
import { makeStore, useStore } from "../store.ts";
import { texts } from "../texts.ts";
import { Button, IconButton } from "./button.ts";

type Toast = {
  readonly text: string;
  readonly kind?: "info" | "error";
  /** An action about the message, such as undo. */
  readonly action?: { readonly label: string; readonly onSelect: () => void };
};

type ShownToast = Toast & { readonly id: number };

const MAX_TOASTS = 4;
const SHOWN_MS = 6_000;
/** Whoever reads slowly or uses a keyboard needs the time to reach the button. */
const SHOWN_WITH_ACTION_MS = 20_000;

const toasts = makeStore<readonly ShownToast[]>([]);
let lastId = 0;

/** Shows a message for a few seconds, or an error until it is closed. */
export function showToast(toast: Toast): void {
  const id = ++lastId;
  toasts.set([...toasts.get(), { ...toast, id }].slice(-MAX_TOASTS));
  if (toast.kind !== "error") setTimeout(() => closeToast(id), toast.action ? SHOWN_WITH_ACTION_MS : SHOWN_MS);
}

function closeToast(id: number): void {
  toasts.set(toasts.get().filter((toast) => toast.id !== id));
}

export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">${useStore(toasts).map(toastBox)}</div>`;
}

function toastBox({ id, text, kind = "info", action }: ShownToast) {
  const act = () => {
    closeToast(id);
    action?.onSelect();
  };
  return html`
    <div key=${id} class=${`toast ${kind}`}>
      <span>${text}</span>
      ${action && html`<${Button} size="small" onClick=${act}>${action.label}<//>`}
      <${IconButton} icon="close" size="small" label=${texts.frame.closeMessage} onClick=${() => closeToast(id)} />
    </div>
  `;
}

import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { type Children, html } from "../html.ts";
import { texts } from "../texts.ts";
import { IconButton } from "./button.ts";

type DialogProps = {
  readonly title: string;
  readonly size?: "normal" | "wide" | "drawer";
  /** Called by Escape, the close button and a click beside the dialog. The owner then stops rendering the dialog. */
  readonly onClose: () => void;
  /** The buttons at the end. */
  readonly actions?: Children;
  readonly children?: Children;
};

/** A modal dialog: the focus stays within it, and returns to its previous place. */
export function Dialog({ title, size = "normal", onClose, actions, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useLayoutEffect(() => {
    const dialog = element.current!;
    dialog.showModal();
    // The dialog closes before it is removed, because only a closing dialog returns the focus.
    return () => dialog.close();
  }, []);
  const cancel = (event: Event) => {
    if (event.target !== element.current) return;
    event.preventDefault();
    onClose();
  };
  return html`
    <dialog
      ref=${element}
      class=${`dialog ${size}`}
      aria-labelledby=${titleId}
      onCancel=${cancel}
      onMouseDown=${(event: MouseEvent) => event.target === element.current && onClose()}
    >
      <div class="dialog-box">
        <div class="dialog-head">
          <h2 id=${titleId}>${title}</h2>
          <${IconButton} icon="close" label=${texts.components.close} onClick=${onClose} />
        </div>
        <div class="dialog-body">${children}</div>
        ${actions && html`<div class="dialog-actions">${actions}</div>`}
      </div>
    </dialog>
  `;
}

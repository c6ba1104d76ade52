import { useState } from "preact/hooks";
import { type Children, html } from "../html.ts";
import { texts } from "../texts.ts";
import { Button } from "./button.ts";
import { Dialog } from "./dialog.ts";
import { Notice } from "./notice.ts";

export type ActionDialogProps = {
  readonly title: string;
  /** On the button that does it. */
  readonly action: string;
  readonly isDangerous?: boolean;
  /** The dialog closes when it resolves, and shows the error otherwise. */
  readonly onAct: () => Promise<void>;
  readonly onClose: () => void;
  readonly children?: Children;
};

/** A form, or a question, whose action can fail. Enter in a field does it. */
export function ActionDialog({ title, action, isDangerous = false, onAct, onClose, children }: ActionDialogProps) {
  const [error, setError] = useState<Error | null>(null);
  const [isBusy, setBusy] = useState(false);
  const act = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      await onAct();
      onClose();
    } catch (failure) {
      setError(failure as Error);
      setBusy(false);
    }
  };
  return html`
    <${Dialog} title=${title} onClose=${onClose}>
      <form class="stack" onSubmit=${act}>
        ${children}
        ${error && html`<${Notice} kind="error" error=${error} />`}
        <div class="row form-actions">
          <${Button} onClick=${onClose}>${texts.components.cancel}<//>
          <${Button} type="submit" kind=${isDangerous ? "danger" : "primary"} busy=${isBusy}>${action}<//>
        </div>
      </form>
    <//>
  `;
}

import { useState } from "preact/hooks";
import { type Children, html } from "../html.ts";
import { texts } from "../texts.ts";
import { Button } from "./button.ts";
import { Dialog } from "./dialog.ts";
import { Notice } from "./notice.ts";

type ActionDialogProps = {
  readonly title: string;
  /** The label of the button that runs the action. */
  readonly action: string;
  readonly isDangerous?: boolean;
  /** Runs the action. The dialog closes when it resolves, and shows the error when it rejects. */
  readonly onAct: () => Promise<void>;
  readonly onClose: () => void;
  readonly children?: Children;
};

/** A form or a question with an action that can fail. Enter in a field runs it. */
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

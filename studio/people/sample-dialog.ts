import { useState } from "preact/hooks";
import { ActionDialog } from "../components/action-dialog.ts";
import { TextField } from "../components/field.ts";
import { showToast } from "../components/toast.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";

type SampleDialogProps = {
  readonly hint: string;
  readonly send: (email: string) => Promise<void>;
  readonly onSent?: () => void;
  readonly onClose: () => void;
};

/** Sends a sample of an e-mail; the dialog shows why the server of e-mails refuses it. */
export function SampleDialog({ hint, send, onSent, onClose }: SampleDialogProps) {
  const [email, setEmail] = useState("");
  const { emails } = texts.people;
  const act = async () => {
    await send(email);
    showToast({ text: emails.sampleToast(email) });
    onSent?.();
  };
  return html`
    <${ActionDialog} title=${emails.sendSample} action=${emails.send} onAct=${act} onClose=${onClose}>
      <p>${hint}</p>
      <${TextField} type="email" required label=${texts.people.email} value=${email} onInput=${setEmail} autocomplete="off" />
    <//>
  `;
}

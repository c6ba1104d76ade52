import { useState } from "preact/hooks";
import { ActionDialog } from "../components/action-dialog.ts";
import { Checkbox, TextField } from "../components/field.ts";
import { Select } from "../components/select.ts";
import { showToast } from "../components/toast.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import { createBranch } from "./changes-api.ts";

const words = texts.changes.branches;
const ROW_CHOICES = ["all", "sample", "none"] as const;
const OPTIONS = ROW_CHOICES.map((value) => ({ value, label: words.rowChoices[value] }));

type CreateBranchDialogProps = {
  readonly onClose: () => void;
  /** Called when the branch is listed; its rows are still being copied. */
  readonly onCreated: () => void;
};

export function CreateBranchDialog({ onClose, onCreated }: CreateBranchDialogProps) {
  const [name, setName] = useState("");
  const [rows, setRows] = useState<(typeof ROW_CHOICES)[number]>("all");
  const [percent, setPercent] = useState("1");
  const [seed, setSeed] = useState("0");
  const [isAnonymized, setAnonymized] = useState(false);
  const isSample = rows === "sample";
  const hasRows = rows !== "none";
  const create = async () => {
    await createBranch({
      name,
      schema_only: !hasRows,
      sample: isSample ? `${percent}%` : null,
      seed: isSample ? Number(seed) : null,
      anonymize: hasRows && isAnonymized,
    });
    showToast({ text: words.begun(name) });
    onCreated();
  };
  return html`
    <${ActionDialog} title=${words.createTitle} action=${words.create} onAct=${create} onClose=${onClose}>
      <${TextField} label=${words.name} hint=${words.nameHint} value=${name} required autofocus onInput=${setName} />
      <${Select} label=${words.rows} value=${rows} options=${OPTIONS} onChange=${setRows} />
      ${isSample && html`<${TextField} label=${words.percent} hint=${words.percentHint} value=${percent} required onInput=${setPercent} />`}
      ${isSample && html`<${TextField} label=${words.seed} hint=${words.seedHint} type="number" value=${seed} required onInput=${setSeed} />`}
      ${hasRows && html`<${Checkbox} label=${words.anonymize} checked=${isAnonymized} onChange=${setAnonymized} />`}
      ${hasRows && isAnonymized && html`<p class="quiet">${words.anonymizeHint}</p>`}
      <p class="quiet">${words.createHint}</p>
    <//>
  `;
}

import { useState } from "preact/hooks";
import { ActionDialog } from "../components/action-dialog.ts";
import { Button } from "../components/button.ts";
import { CodeBlock } from "../components/code-block.ts";
import { Checkbox, TextField } from "../components/field.ts";
import { formatBytes } from "../components/format.ts";
import { Notice } from "../components/notice.ts";
import { Empty, Loading } from "../components/page.ts";
import { PlainTable } from "../components/plain-table.ts";
import { showToast } from "../components/toast.ts";
import { useLoaded } from "../components/use-loaded.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import { type Branch, type BranchList, createBranch, dropBranch, listBranches } from "./changes-api.ts";
import { RefusalNotice } from "./copy-task.ts";

const words = texts.changes.branches;

/** Copies of the database on the same server. */
export function BranchesTab() {
  const { value, error, isLoading, reload } = useLoaded(listBranches, []);
  const [isCreating, setCreating] = useState(false);
  const [dropped, setDropped] = useState<Branch | null>(null);
  const [warnings, setWarnings] = useState<readonly string[]>([]);
  const drop = async () => {
    await dropBranch(dropped!.name);
    reload();
  };
  const onCreated = (found: readonly string[]) => {
    setWarnings(found);
    reload();
  };
  return html`
    <div class="row">
      <p class="quiet">${words.intro}</p>
      <div class="page-actions">
        <${Button} icon="plus" kind="primary" disabled=${!value || value.refusal !== null} onClick=${() => setCreating(true)}>${words.create}<//>
      </div>
    </div>
    ${error && html`<${Notice} kind="error" error=${error} onRetry=${reload} />`}
    ${!value && isLoading && html`<${Loading} />`}
    ${value && html`<${RefusalNotice} refusal=${value.refusal} command=${value.create_command} />`}
    ${warnings.map((warning) => html`<${Notice} key=${warning} kind="warning">${warning}<//>`)}
    ${value && html`<${BranchTable} list=${value} onDrop=${setDropped} />`}
    ${isCreating && html`<${CreateDialog} onClose=${() => setCreating(false)} onCreated=${onCreated} />`}
    ${
      dropped &&
      html`
        <${ActionDialog} title=${words.dropTitle(dropped.name)} action=${words.drop} isDangerous onAct=${drop} onClose=${() => setDropped(null)}>
          <p>${words.dropHint}</p>
        <//>
      `
    }
  `;
}

type BranchTableProps = { readonly list: BranchList; readonly onDrop: (branch: Branch) => void };

function BranchTable({ list: { branches, served, refusal }, onDrop }: BranchTableProps) {
  if (branches.length === 0) return html`<${Empty}>${words.none}<//>`;
  const { name, size, sessions, command, actions } = words.columns;
  const rows = branches.map((branch) => ({
    key: branch.name,
    cells: [
      html`${branch.name} ${branch.name === served && html`<span class="badge good">${words.served}</span>`}`,
      formatBytes(branch.bytes),
      branch.sessions,
      html`<${CodeBlock} text=${branch.serve_command} label=${words.commandOf(branch.name)} />`,
      html`<${Button} size="small" disabled=${refusal !== null} title=${words.dropTitle(branch.name)} onClick=${() => onDrop(branch)}>${words.dropOf(branch.name)}<//>`,
    ],
  }));
  return html`<${PlainTable} label=${texts.changes.tabs.branches} heads=${[name, size, sessions, command, actions]} rows=${rows} hasRowHeads />`;
}

type CreateDialogProps = {
  readonly onClose: () => void;
  readonly onCreated: (warnings: readonly string[]) => void;
};

function CreateDialog({ onClose, onCreated }: CreateDialogProps) {
  const [name, setName] = useState("");
  const [withRows, setWithRows] = useState(true);
  const create = async () => {
    const { copy, warnings } = await createBranch(name, !withRows);
    showToast({ text: words.created(name, copy) });
    onCreated(warnings);
  };
  return html`
    <${ActionDialog} title=${words.createTitle} action=${words.create} onAct=${create} onClose=${onClose}>
      <${TextField} label=${words.name} hint=${words.nameHint} value=${name} required autofocus onInput=${setName} />
      <${Checkbox} label=${words.withRows} checked=${withRows} onChange=${setWithRows} />
      <p class="quiet">${words.createHint}</p>
    <//>
  `;
}

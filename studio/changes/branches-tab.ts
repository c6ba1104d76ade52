import { useState } from "preact/hooks";
import type { BranchList, ListedBranch } from "#operations/admin-types";
import { useLoaded, useRepeatedLoads } from "../api/use-loaded.ts";
import { ActionDialog } from "../components/action-dialog.ts";
import { Button } from "../components/button.ts";
import { CodeBlock } from "../components/code-block.ts";
import { Notice } from "../components/notice.ts";
import { Empty, Loading } from "../components/page.ts";
import { PlainTable } from "../components/plain-table.ts";
import { html } from "../html.ts";
import { formatBytes } from "../texts/format.ts";
import { texts } from "../texts.ts";
import { dropBranch, listBranches } from "./changes-api.ts";
import { RefusalNotice } from "./copy-task.ts";
import { CreateBranchDialog } from "./create-branch-dialog.ts";

const words = texts.changes.branches;

/** Copies of the database on the same server. */
export function BranchesTab() {
  const loaded = useLoaded(listBranches, []);
  const { value, error, isLoading, reload } = loaded;
  useRepeatedLoads(loaded, value?.branches.some(({ state }) => state === "being copied") ?? false);
  const [isCreating, setCreating] = useState(false);
  const [dropped, setDropped] = useState<ListedBranch | null>(null);
  const drop = async () => {
    await dropBranch(dropped!.name);
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
    ${value?.branches.map((branch) => html`<${BranchNotices} key=${branch.name} branch=${branch} />`)}
    ${value && html`<${BranchTable} list=${value} onDrop=${setDropped} />`}
    ${isCreating && html`<${CreateBranchDialog} onClose=${() => setCreating(false)} onCreated=${reload} />`}
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

function BranchNotices({ branch: { name, state, error, warnings } }: { readonly branch: ListedBranch }) {
  if (state === "failed") return html`<${Notice} kind="error" title=${words.failure(name)}>${error}<//>`;
  if (state === "interrupted")
    return html`<${Notice} kind="warning" title=${words.failure(name)}>${words.interruption}<//>`;
  return warnings.map((warning) => html`<${Notice} key=${warning} kind="warning" title=${name}>${warning}<//>`);
}

const BADGES: Readonly<Record<ListedBranch["state"], string>> = {
  complete: "",
  "being copied": "",
  failed: "danger",
  interrupted: "warning",
};

type BranchTableProps = { readonly list: BranchList; readonly onDrop: (branch: ListedBranch) => void };

function BranchTable({ list: { branches, served, refusal }, onDrop }: BranchTableProps) {
  if (branches.length === 0) return html`<${Empty}>${words.none}<//>`;
  const { name, size, sessions, command, actions } = words.columns;
  const rows = branches.map((branch) => ({
    key: branch.name,
    cells: [
      html`
        ${branch.name} ${branch.name === served && html`<span class="badge good">${words.served}</span>`}
        ${branch.state !== "complete" && html`<span class=${`badge ${BADGES[branch.state]}`}>${words.states[branch.state]}</span>`}
      `,
      formatBytes(branch.bytes),
      branch.sessions,
      branch.state === "complete" &&
        html`<${CodeBlock} text=${branch.serve_command} label=${words.commandOf(branch.name)} />`,
      html`<${Button} size="small" disabled=${refusal !== null || branch.state === "being copied"} title=${words.dropTitle(branch.name)} onClick=${() => onDrop(branch)}>${words.dropOf(branch.name)}<//>`,
    ],
  }));
  return html`<${PlainTable} label=${texts.changes.tabs.branches} heads=${[name, size, sessions, command, actions]} rows=${rows} hasRowHeads />`;
}

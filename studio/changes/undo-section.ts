import { useState } from "preact/hooks";
import type { LastMigrationUndo, MigrationsState } from "#operations/admin-types";
import { reloadCatalog } from "../api/use-catalog.ts";
import { ActionDialog } from "../components/action-dialog.ts";
import { Button } from "../components/button.ts";
import { CodeBlock } from "../components/code-block.ts";
import { Notice } from "../components/notice.ts";
import { showToast } from "../components/toast.ts";
import { UndoReport } from "../components/undo-report.ts";
import { html } from "../html.ts";

import { FaultNotice } from "../schema/forms/apply-sql-dialog.ts";
import { texts } from "../texts.ts";
import { findUndo, undoMigration } from "./changes-api.ts";
import { RefusalNotice } from "./copy-task.ts";
import { useTask } from "./use-task.ts";

const words = texts.changes.undoLast;

type UndoSectionProps = { readonly list: MigrationsState; readonly onUndone: () => void };

/** Undoes the last migration, if that loses nothing. */
export function UndoSection({ list: { refusal, commands }, onUndone }: UndoSectionProps) {
  const { result, error, isRunning, run, stop } = useTask(findUndo);
  return html`
    <section class="stack" aria-label=${words.title}>
      <h2>${words.title}</h2>
      <p class="quiet">${words.intro}</p>
      <${RefusalNotice} refusal=${refusal} command=${commands.undo} />
      <div class="row">
        <${Button} busy=${isRunning} disabled=${refusal !== null} onClick=${() => run()}>${words.find}<//>
        ${isRunning && html`<${Button} icon="stop" onClick=${stop}>${texts.changes.stop}<//>`}
        ${isRunning && html`<p class="quiet" role="status">${words.progress}</p>`}
      </div>
      ${error && html`<${Notice} kind="error" error=${error} />`}
      ${result?.error && html`<${FaultNotice} fault=${result.error} />`}
      ${result?.error === null && html`<${FoundUndo} found=${result} command=${commands.undo} onUndone=${onUndone} />`}
    </section>
  `;
}

type FoundUndoProps = {
  readonly found: Extract<LastMigrationUndo, { error: null }>;
  readonly command: string;
  readonly onUndone: () => void;
};

function FoundUndo({ found: { file, undo, changed_since: changedSince }, command, onUndone }: FoundUndoProps) {
  const [isAsking, setAsking] = useState(false);
  const act = async () => {
    const done = await undoMigration(file);
    if (done.error) throw new Error(done.error.message);
    if (!done.is_undone) throw new Error(words.notUndone);
    await reloadCatalog();
    showToast({ text: words.undone(file) });
    onUndone();
  };
  const canUndo = undo.verdict === "can be undone";
  return html`
    <p class="changes-name">${file}</p>
    <${UndoReport} undo=${undo} />
    ${
      canUndo &&
      changedSince.length > 0 &&
      html`
        <${Notice} kind="warning" title=${words.changedSince}>
          <ul>
            ${changedSince.map((change) => html`<li key=${change}>${change}</li>`)}
          </ul>
          <p>${words.forcedBy}</p>
          <${CodeBlock} text=${`${command} --yes --force`} label=${texts.changes.command} />
        <//>
      `
    }
    ${
      canUndo &&
      changedSince.length === 0 &&
      html`<div class="row"><${Button} kind="danger" onClick=${() => setAsking(true)}>${words.undo}<//></div>`
    }
    ${
      isAsking &&
      html`
        <${ActionDialog} title=${words.undoTitle(file)} action=${words.undo} isDangerous onAct=${act} onClose=${() => setAsking(false)}>
          <p>${words.undoHint}</p>
          ${canUndo && undo.drops.length > 0 && html`<p>${texts.undo.lostByUndo(undo.drops)}</p>`}
        <//>
      `
    }
  `;
}

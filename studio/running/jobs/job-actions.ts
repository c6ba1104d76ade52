import { useState } from "preact/hooks";
import { ActionDialog } from "../../components/action-dialog.ts";
import { Button } from "../../components/button.ts";
import { showToast } from "../../components/toast.ts";
import { html } from "../../html.ts";
import { texts } from "../../texts.ts";
import { JobDialog } from "./job-dialogs.ts";
import { deleteJob, enableJob, type JobKind, replayWebhook, runSchedule } from "./job-sql.ts";
import { runOwnerSql } from "./run-owner-sql.ts";

const words = texts.jobs;

type NewJobProps = { readonly kind: JobKind; readonly onChange: () => void };

export function NewJobButton({ kind, onChange }: NewJobProps) {
  const [isOpen, setOpen] = useState(false);
  return html`
    <div class="row"><${Button} size="small" icon="plus" onClick=${() => setOpen(true)}>${words.new[kind]}<//></div>
    ${isOpen && html`<${JobDialog} kind=${kind} name=${null} onClose=${() => setOpen(false)} onSaved=${onChange} />`}
  `;
}

type JobActionsProps = NewJobProps & {
  readonly name: string;
  readonly isEnabled: boolean;
  /** The number of a webhook's dead deliveries. */
  readonly dead?: number;
};

/** The buttons of a row; those with large effects ask first. */
export function JobActions({ kind, name, isEnabled, dead = 0, onChange }: JobActionsProps) {
  const [open, setOpen] = useState<"change" | "delete" | null>(null);
  const close = () => setOpen(null);
  const run = async (sql: string) => {
    await runOwnerSql(sql);
    showToast({ text: words.done });
    onChange();
  };
  const runOrTell = (sql: string) => () =>
    run(sql).catch((error: Error) => showToast({ text: error.message, kind: "error" }));
  const button = (label: string, act: () => void) =>
    html`<${Button} size="small" onClick=${act}>${label}<span class="visually-hidden"> ${name}</span><//>`;
  return html`
    <div class="row job-actions">
      ${button(words.change, () => setOpen("change"))}
      ${button(isEnabled ? words.disable : words.enable, runOrTell(enableJob(kind, name, !isEnabled)))}
      ${kind === "schedule" && button(words.runNow, runOrTell(runSchedule(name)))}
      ${dead > 0 && button(words.replay, runOrTell(replayWebhook(name)))}
      ${button(words.delete, () => setOpen("delete"))}
    </div>
    ${open === "change" && html`<${JobDialog} kind=${kind} name=${name} onClose=${close} onSaved=${onChange} />`}
    ${
      open === "delete" &&
      html`
        <${ActionDialog} title=${words.deleteTitle(name)} action=${words.delete} isDangerous onClose=${close}
          onAct=${() => run(deleteJob(kind, name))}>
          <p>${words.deleteExplained[kind]}</p>
        <//>
      `
    }
  `;
}

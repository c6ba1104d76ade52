import type { ComparisonOfCopy, CopyRefusal, Rehearsal } from "#operations/admin-types";
import { Button } from "../components/button.ts";
import { CodeBlock } from "../components/code-block.ts";
import { Notice } from "../components/notice.ts";
import { type Children, html } from "../html.ts";
import { FaultNotice } from "../schema/forms/apply-sql-dialog.ts";
import { texts } from "../texts.ts";
import type { Task } from "./use-task.ts";

const words = texts.changes;

type RefusalNoticeProps = { readonly refusal: CopyRefusal | null; readonly command: string };

/** The reason why Studio cannot do the task, and the command that does it. */
export function RefusalNotice({ refusal, command }: RefusalNoticeProps) {
  if (refusal === null) return null;
  return html`
    <${Notice} kind="warning">
      <p>${refusal.reason} ${refusal.how}</p>
      <p>${words.byCommand}</p>
      <${CodeBlock} text=${command} label=${words.command} wrap />
    <//>
  `;
}

type CopyTaskProps = {
  readonly task: Pick<Task<Rehearsal | ComparisonOfCopy>, "result" | "error" | "isRunning" | "stop">;
  readonly action: string;
  readonly progress: string;
  readonly isRefused: boolean;
  readonly onRun: () => void;
  /** The options beside the button. */
  readonly options?: Children;
  /** The content that shows the result. */
  readonly children?: Children;
};

/** A task on a copy of the database: the button that starts it, its progress, its errors and its result. */
export function CopyTask({ task, action, progress, isRefused, onRun, options, children }: CopyTaskProps) {
  const { result, error, isRunning, stop } = task;
  return html`
    <div class="row">
      <${Button} kind="primary" icon="play" busy=${isRunning} disabled=${isRefused} onClick=${onRun}>${action}<//>
      ${isRunning && html`<${Button} icon="stop" onClick=${stop}>${words.stop}<//>`}
      ${options}
    </div>
    ${
      isRunning &&
      html`
        <div class="row">
          <progress aria-label=${action}></progress>
          <p class="quiet" role="status">${progress}</p>
        </div>
      `
    }
    ${error && html`<${Notice} kind="error" error=${error} />`}
    ${result?.error && html`<${FaultNotice} fault=${result.error} />`}
    ${
      result &&
      !result.error &&
      html`
        <p class="quiet">${words.bases[result.basis]}</p>
        ${result.warnings.map((warning) => html`<${Notice} key=${warning} kind="warning">${warning}<//>`)}
      `
    }
    ${children}
  `;
}

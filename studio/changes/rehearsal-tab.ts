import { useState } from "preact/hooks";
import type { MigrationsState, Rehearsal, StatementRehearsal } from "#operations/admin-types";
import { CodeBlock } from "../components/code-block.ts";
import { Checkbox } from "../components/field.ts";
import { Notice } from "../components/notice.ts";
import { Empty } from "../components/page.ts";
import { UndoReport } from "../components/undo-report.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import { CopyTask, RefusalNotice } from "./copy-task.ts";
import type { Task } from "./use-task.ts";

const words = texts.changes.rehearsal;
const BADGES: Readonly<Record<StatementRehearsal["verdict"], string>> = {
  safe: "good",
  brief: "good",
  "holds writes": "warning",
  "holds reads": "danger",
  rewrites: "danger",
  "not rehearsed": "",
};

type RehearsalTabProps = { readonly list: MigrationsState; readonly task: Task<Rehearsal, [withRows: boolean]> };

/** The sessions that each pending statement would block. */
export function RehearsalTab({ list: { refusal, commands, pending }, task }: RehearsalTabProps) {
  const [isChosen, setChosen] = useState(false);
  const isDeveloped = pending.some((each) => each.is_current && each.is_applied);
  const withRows = isChosen && !isDeveloped;
  const statements = task.result?.error === null ? task.result.statements : null;
  const options = html`<${Checkbox} label=${words.withRows} checked=${withRows} disabled=${isDeveloped || refusal !== null} onChange=${setChosen} />`;
  return html`
    <p>${words.intro}</p>
    ${isDeveloped && html`<p class="quiet">${words.noRows}</p>`}
    <${RefusalNotice} refusal=${refusal} command=${commands.rehearse} />
    <${CopyTask}
      task=${task}
      action=${words.run}
      progress=${words.progress}
      isRefused=${refusal !== null}
      onRun=${() => task.run(withRows)}
      options=${options}
    >
      ${statements?.length === 0 && html`<${Empty}>${texts.changes.nothingPending}<//>`}
      ${statements && statements.length > 0 && html`<${Statements} statements=${statements} />`}
    <//>
  `;
}

function Statements({ statements }: { readonly statements: readonly StatementRehearsal[] }) {
  const counts = Object.keys(BADGES)
    .map((verdict) => ({ verdict, count: statements.filter((each) => each.verdict === verdict).length }))
    .filter(({ count }) => count > 0);
  return html`
    <p role="status">${words.summary(statements.length, counts)}</p>
    <ol class="changes-list">
      ${statements.map((each, index) => html`<${StatementItem} key=${index} statement=${each} />`)}
    </ol>
  `;
}

function StatementItem({ statement }: { readonly statement: StatementRehearsal }) {
  const { file, line, sql, verdict, safeForm, undo } = statement;
  return html`
    <li class="stack">
      <h2 class="row">
        <span class=${`badge ${BADGES[verdict]}`}>${verdict}</span>
        <span class="changes-name">${words.place(file, line)}</span>
      </h2>
      <${CodeBlock} text=${sql} label=${words.sqlAt(file, line)} wrap />
      <ul class="changes-measures">
        ${describeMeasures(statement).map((measure) => html`<li key=${measure}>${measure}</li>`)}
      </ul>
      ${safeForm !== null && html`<${Notice} kind="warning" title=${words.safeForm}>${safeForm}<//>`}
      ${undo && html`<${UndoReport} undo=${undo} />`}
    </li>
  `;
}

function describeMeasures(statement: StatementRehearsal): readonly string[] {
  if (statement.verdict === "not rehearsed") return [words.skipped];
  const { locks, lockedRows, rewritten, scanned, inserted, changed, walBytes, milliseconds, heldRequests } = statement;
  return [
    ...locks.map(({ relation, mode, blocks, isEarlier }) => words.lock(lockName(mode), relation, blocks, isEarlier)),
    ...lockedRows.map(({ relation, rows, isEarlier }) => words.lockedRows(relation, rows, isEarlier)),
    ...(locks.length + lockedRows.length === 0 ? [words.noLocks] : []),
    ...rewritten.map(({ relation, rows }) => words.rewrites(relation, rows)),
    ...scanned.map(({ relation, rows }) => words.reads(relation, rows)),
    ...(inserted > 0 ? [words.inserts(inserted)] : []),
    ...(changed > 0 ? [words.changes(changed)] : []),
    words.costs(milliseconds, walBytes),
    ...(heldRequests === undefined ? [] : [words.held(heldRequests)]),
  ];
}

/** Returns `access exclusive` for `AccessExclusiveLock`. */
function lockName(mode: string): string {
  return mode
    .replace(/Lock$/, "")
    .replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ")
    .toLowerCase();
}

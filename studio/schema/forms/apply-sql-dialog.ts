import { useEffect, useMemo, useState } from "preact/hooks";
import type { AppliedSql, DryRunResult, MigrationStatus, RowsToCount, SqlFault } from "#operations/admin-types";
import { applyChange, readMigrationState, tryChange } from "../../api/migration.ts";
import { reloadCatalog } from "../../api/use-catalog.ts";
import { useLoaded } from "../../api/use-loaded.ts";
import { Button } from "../../components/button.ts";
import { CopyButton } from "../../components/code-block.ts";
import { CodeEditor, type CodeProblem } from "../../components/code-editor.ts";
import { Dialog } from "../../components/dialog.ts";
import { Notice } from "../../components/notice.ts";
import { saveFile } from "../../components/save-file.ts";
import { showToast } from "../../components/toast.ts";
import { html } from "../../html.ts";
import { texts } from "../../texts.ts";
import { DryRunReport } from "./dry-run-report.ts";

type ApplySqlDialogProps = {
  readonly title: string;
  /** The SQL; it can be edited before it is applied. */
  readonly sql: string;
  /** A short description of the change; it becomes part of the file's name. */
  readonly name: string;
  /** The rows that the dry run counts per role, for policies and grants. */
  readonly counted?: RowsToCount;
  readonly onClose: () => void;
  /** Called when the SQL is applied and the catalogue is reloaded; then the dialog closes. */
  readonly onApplied?: (change: AppliedSql) => void;
  /** Returns to the form that made the SQL. */
  readonly onBack?: () => void;
};

const words = texts.schemaForms;

/** Shows SQL that changes the schema, tries it, and writes it into the current migration or runs it, as the service allows. */
export function ApplySqlDialog(props: ApplySqlDialogProps) {
  const { title, sql: proposed, name, counted, onClose, onApplied, onBack } = props;
  const [sql, setSql] = useState(proposed);
  const state = useLoaded((signal) => readMigrationState(name, signal), [name]);
  const { work, trySql, apply } = useSqlChange({ sql, name, counted }, (change) => {
    onApplied?.(change);
    onClose();
  });
  useEffect(() => {
    if (sql.trim() !== "") void trySql();
  }, []);
  const mode = state.value?.mode ?? "off";
  const actions = html`
    ${onBack && html`<${Button} class="first-action" onClick=${onBack}>${words.back}<//>`}
    <${CopyButton} text=${sql} />
    <${Button} busy=${work.running === "try"} disabled=${work.running !== null} onClick=${trySql}>${words.dryRun}<//>
    <${Button} kind="primary" busy=${work.running === "apply"} disabled=${mode === "off" || work.running !== null} onClick=${apply}>
      ${mode === "current" ? words.writeToMigration : words.run}
    <//>
  `;
  return html`
    <${Dialog} title=${title} size="wide" onClose=${onClose} actions=${actions}>
      ${state.error && html`<${Notice} kind="error" error=${state.error} />`}
      ${state.value && html`<${ModeNotice} state=${state.value} sql=${sql} />`}
      <${SqlField} sql=${sql} fault=${work.fault} onInput=${setSql} onTry=${trySql} />
      ${work.error && html`<${Notice} kind="error" error=${work.error} />`}
      ${work.fault && html`<${FaultNotice} fault=${work.fault} />`}
      ${work.dryRun && html`<${DryRunReport} run=${work.dryRun} />`}
    <//>
  `;
}

type ChangeWork = {
  readonly running: "try" | "apply" | null;
  readonly fault: SqlFault | null;
  readonly dryRun: DryRunResult | null;
  readonly error: Error | null;
};

const NO_WORK: ChangeWork = { running: null, fault: null, dryRun: null, error: null };

type SqlChange = Pick<ApplySqlDialogProps, "sql" | "name"> & { readonly counted: RowsToCount | undefined };

function useSqlChange({ sql, name, counted }: SqlChange, onApplied: (change: AppliedSql) => void) {
  const [work, setWork] = useState<ChangeWork>(NO_WORK);
  const trySql = async () => {
    setWork({ ...NO_WORK, running: "try" });
    try {
      const run = await tryChange(sql, counted);
      setWork(run.error ? { ...NO_WORK, fault: run.error } : { ...NO_WORK, dryRun: run });
    } catch (error) {
      setWork({ ...NO_WORK, error: error as Error });
    }
  };
  const apply = async () => {
    setWork((before) => ({ ...before, running: "apply", fault: null, error: null }));
    try {
      const change = await applyChange(sql, name);
      if (change.error) return setWork({ ...NO_WORK, fault: change.error });
      await reloadCatalog();
      showToast({ text: change.file === null ? words.applied : words.written(change.file) });
      onApplied(change);
    } catch (error) {
      setWork({ ...NO_WORK, error: error as Error });
    }
  };
  return { work, trySql, apply };
}

function ModeNotice({ state, sql }: { readonly state: MigrationStatus; readonly sql: string }) {
  const { mode, reason, how, new_file: file } = state;
  return html`
    <${Notice} kind=${mode === "off" ? "warning" : "info"}>
      <p>${reason}</p>
      ${how && html`<p>${how}</p>`}
      ${mode === "off" && file !== null && html`<${MigrationFile} file=${file} sql=${sql} />`}
      ${mode === "current" && html`<p class="quiet">${words.runAgain}</p>`}
    <//>
  `;
}

/** Offers the SQL as the file that it would become where the service writes migrations. */
function MigrationFile({ file, sql }: { readonly file: string; readonly sql: string }) {
  const text = `${sql.trim()}\n`;
  const save = () => saveFile(file.slice(file.lastIndexOf("/") + 1), new Blob([text], { type: "application/sql" }));
  return html`
    <p>${words.migrationFile} <code>${file}</code></p>
    <div class="row">
      <${CopyButton} text=${text} label=${words.copyFile} />
      <${Button} size="small" icon="download" onClick=${save}>${words.saveFile}<//>
    </div>
  `;
}

type SqlFieldProps = {
  readonly sql: string;
  readonly fault: SqlFault | null;
  readonly onInput: (sql: string) => void;
  /** Called by the keyboard shortcut of the editor. */
  readonly onTry: () => void;
};

/** Escape leaves the editor, and does not close the dialog. */
function SqlField({ sql, fault, onInput, onTry }: SqlFieldProps) {
  const problems = useMemo(() => (fault && fault.file === null ? [toProblem(sql, fault)] : []), [fault]);
  const stayInDialog = (event: KeyboardEvent) => event.key === "Escape" && event.preventDefault();
  return html`
    <div onKeyDown=${stayInDialog}>
      <${CodeEditor} label=${words.sql} language="sql" value=${sql} problems=${problems} onChange=${onInput} keys=${{ "Mod-Enter": onTry }} />
      <p class="field-hint">${words.sqlHint}</p>
    </div>
  `;
}

/** Marks the word at the position of the error. */
function toProblem(sql: string, { line, column, message }: SqlFault): CodeProblem {
  const leading = sql.length - sql.trimStart().length;
  const before = sql
    .slice(leading)
    .split("\n")
    .slice(0, line - 1);
  const from = leading + before.reduce((length, text) => length + text.length + 1, 0) + column - 1;
  const [word] = /^\w*/.exec(sql.slice(from))!;
  return { from, to: from + Math.max(1, word.length), message };
}

/** An error in SQL, with its position. */
export function FaultNotice({ fault }: { readonly fault: SqlFault }) {
  const { message, detail, hint, file, line, column, sqlstate } = fault;
  return html`
    <${Notice} kind="error" title=${message}>
      <p>${file === null ? words.place(line, column) : words.placeInFile(file, line, column)}</p>
      ${detail && html`<p>${detail}</p>`}
      ${hint && html`<p>${hint}</p>`}
      ${sqlstate && html`<p class="quiet">${words.sqlstate(sqlstate)}</p>`}
    <//>
  `;
}

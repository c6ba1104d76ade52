import { useEffect, useRef, useState } from "preact/hooks";
import { valueNamed } from "../../api/named-values.ts";
import { useLoaded } from "../../api/use-loaded.ts";
import { Button } from "../../components/button.ts";
import { Dialog } from "../../components/dialog.ts";
import { Field } from "../../components/field.ts";
import { Notice } from "../../components/notice.ts";
import { Loading } from "../../components/page.ts";
import { Select } from "../../components/select.ts";
import { html } from "../../html.ts";
import { texts } from "../../texts.ts";
import { type EditedTable, isWritable } from "../edit/edited-table.ts";
import type { EditingRights } from "../edit/editing-session.ts";
import type { RowChanger } from "../edit/row-changes.ts";
import { problemText } from "../edit/value-texts.ts";
import { CsvSyntaxError } from "./csv-reader.ts";
import { textOf } from "./export-rows.ts";
import {
  CsvRecordReader,
  type ImportPlan,
  type ImportRecord,
  JsonRecordReader,
  proposeMapping,
  type RecordProblem,
} from "./import-plan.ts";
import {
  checkImport,
  type ImportCheck,
  type ImportProgress,
  type ImportResult,
  importRows,
  readRecords,
} from "./import-rows.ts";
import { JsonArrayError } from "./json-elements.ts";

type ImportDialogProps = {
  readonly changer: RowChanger;
  readonly rights: EditingRights;
  /** Called when rows have been inserted. */
  readonly onDone: () => void;
  readonly onClose: () => void;
};

type ImportChoices = Pick<ImportPlan, "mapping" | "emptyCells"> & { readonly existing: "refuse" | "skip" | "replace" };
type Preview = { readonly names: readonly string[]; readonly records: readonly ImportRecord[] };

const PREVIEW_ROWS = 5;

/** Imports a file after reading it as a whole without problems. */
export function ImportDialog({ changer, rights, onDone, onClose }: ImportDialogProps) {
  const { table } = changer;
  const [file, setFile] = useState<File | null>(null);
  const control = (attributes: Record<string, unknown>) => html`
    <input
      ...${attributes}
      type="file"
      accept=".csv,.tsv,.txt,.json,text/csv,application/json"
      onChange=${({ currentTarget }: { currentTarget: HTMLInputElement }) => setFile(currentTarget.files?.[0] ?? null)}
    />
  `;
  return html`
    <${Dialog} title=${texts.transfer.importTitle(table.name)} size="wide" onClose=${onClose}>
      <${Field} label=${texts.transfer.file} hint=${texts.transfer.fileHint} control=${control} />
      ${file && html`<${FileImport} key=${`${file.name}.${file.size}.${file.lastModified}`} file=${file} changer=${changer} rights=${rights} onDone=${onDone} />`}
    <//>
  `;
}

type FileImportProps = Pick<ImportDialogProps, "changer" | "rights" | "onDone"> & { readonly file: File };

function FileImport({ file, changer, rights, onDone }: FileImportProps) {
  const { table } = changer;
  const [choices, setChoices] = useState<ImportChoices | null>(null);
  const preview = useLoaded(() => readPreview(file), [file]);
  useEffect(() => {
    if (preview.value)
      setChoices({ mapping: proposeMapping(table, preview.value.names), emptyCells: "null", existing: "refuse" });
  }, [preview.value]);
  if (preview.error) return html`<${Notice} kind="error" title=${fileErrorText(preview.error)} />`;
  if (!preview.value || !choices) return html`<${Loading} text=${texts.transfer.checking} />`;
  const change = (changed: Partial<ImportChoices>) => setChoices({ ...choices, ...changed });
  const writable = table.columns.filter((column) => isWritable(column) && rights.canWrite(column.name, "insert"));
  return html`
    <${Mapping} table=${writable} preview=${preview.value} choices=${choices} onChange=${change} />
    ${!isJson(file) && html`<${CsvChoices} choices=${choices} onChange=${change} />`}
    <${Select}
      label=${texts.transfer.existing}
      value=${choices.existing}
      options=${optionsOf(texts.transfer.existingChoices)}
      onChange=${(existing: ImportChoices["existing"]) => change({ existing })}
    />
    <${CheckedImport} key=${JSON.stringify(choices)} file=${file} changer=${changer} choices=${choices} onDone=${onDone} />
  `;
}

type ImportChoicesProps = {
  readonly choices: ImportChoices;
  readonly onChange: (changed: Partial<ImportChoices>) => void;
};

function CsvChoices({ choices, onChange }: ImportChoicesProps) {
  return html`<${Select}
    label=${texts.transfer.emptyCells}
    value=${choices.emptyCells}
    options=${optionsOf(texts.transfer.emptyChoices)}
    onChange=${(emptyCells: ImportPlan["emptyCells"]) => onChange({ emptyCells })}
  />`;
}

type MappingProps = ImportChoicesProps & { readonly table: EditedTable["columns"]; readonly preview: Preview };

/** The columns of the file with its first rows, and the table column for each. */
function Mapping({ table, preview, choices, onChange }: MappingProps) {
  const { mapping } = choices;
  const taken = new Set(Object.values(mapping));
  const optionsFor = (name: string) => [
    { value: "", label: texts.transfer.leaveOut },
    ...table
      .filter((column) => !taken.has(column.name) || mapping[name] === column.name)
      .map((column) => ({ value: `:${column.name}`, label: column.name })),
  ];
  return html`
    <div class="scroll-x" role="region" aria-label=${texts.transfer.mapping} tabindex="0">
      <table class="plain-table">
        <caption class="visually-hidden">${texts.transfer.preview}</caption>
        <thead>
          <tr>
            ${preview.names.map(
              (name) => html`
                <th key=${name} scope="col">
                  <${Select}
                    label=${name}
                    value=${mapping[name] == null ? "" : `:${mapping[name]}`}
                    options=${optionsFor(name)}
                    onChange=${(chosen: string) => onChange({ mapping: { ...mapping, [name]: chosen === "" ? null : chosen.slice(1) } })}
                  />
                </th>
              `,
            )}
          </tr>
        </thead>
        <tbody>
          ${preview.records.map(
            ({ line, values }) =>
              html`<tr key=${line}>${preview.names.map((name) => html`<td key=${name} class="editing-compared">${previewText(valueNamed(values, name))}</td>`)}</tr>`,
          )}
        </tbody>
      </table>
    </div>
  `;
}

type CheckedImportProps = {
  readonly file: File;
  readonly changer: RowChanger;
  readonly choices: ImportChoices;
  readonly onDone: () => void;
};

type ImportState = {
  readonly progress: ImportProgress | null;
  readonly result: ImportResult | null;
  readonly error: Error | null;
};

function CheckedImport({ file, changer, choices, onDone }: CheckedImportProps) {
  const plan: ImportPlan = { table: changer.table, format: isJson(file) ? "json" : "csv", ...choices };
  const isMapped = Object.values(choices.mapping).some((column) => column !== null);
  const check = useLoaded(() => checkImport(recordsOf(file), plan), []);
  const [state, setState] = useState<ImportState>({ progress: null, result: null, error: null });
  const isRunning = useRef(false);
  const start = async () => {
    if (isRunning.current) return;
    isRunning.current = true;
    setState({ progress: { inserted: 0, lastLine: 0 }, result: null, error: null });
    const onProgress = (progress: ImportProgress) => setState((before) => ({ ...before, progress }));
    try {
      const { existing } = choices;
      const result = await importRows(recordsOf(file), { plan, existing, send: changer.send, onProgress });
      setState({ progress: null, result, error: null });
    } catch (error) {
      setState({ progress: null, result: null, error: error as Error });
    }
    isRunning.current = false;
    onDone();
  };
  if (check.error) return html`<${Notice} kind="error" title=${fileErrorText(check.error)} />`;
  if (!check.value) return html`<${Loading} text=${texts.transfer.checking} />`;
  if (!isMapped) return html`<${Notice} kind="warning">${texts.transfer.noColumns}<//>`;
  const { rows, problems } = check.value;
  const { progress, result, error } = state;
  return html`
    ${problems.length > 0 ? html`<${Problems} check=${check.value} />` : !result && html`<p>${texts.transfer.checked(rows)}</p>`}
    <p class="quiet">${texts.transfer.howItIsSent}</p>
    ${progress && html`<p role="status">${texts.transfer.progress(progress.inserted, rows)} <progress max=${rows} value=${progress.inserted} aria-label=${texts.transfer.import}></progress></p>`}
    ${result && html`<${Result} result=${result} />`}
    ${error && html`<${Notice} kind="error" error=${error} />`}
    ${
      result?.status !== "done" &&
      html`<${Button} kind="primary" busy=${progress !== null} disabled=${problems.length > 0 || rows === 0} onClick=${start}>${texts.transfer.start(rows)}<//>`
    }
  `;
}

function Problems({ check: { problems, hasMore } }: { readonly check: ImportCheck }) {
  const count = hasMore ? texts.transfer.manyProblems(problems.length) : texts.transfer.problemCount(problems.length);
  return html`
    <${Notice} kind="error" title=${texts.transfer.problemsFound(count)}>
      <ul class="editing-problems">${problems.map((problem, index) => html`<li key=${index}>${problemLine(problem)}</li>`)}</ul>
    <//>
  `;
}

function problemLine({ line, column, problem }: RecordProblem): string {
  return [texts.transfer.line(line), column, problemText(problem)].filter(Boolean).join(" · ");
}

function Result({ result }: { readonly result: ImportResult }) {
  if (result.status === "done") return html`<${Notice} kind="success">${texts.transfer.done(result.inserted)}<//>`;
  const { lines, line, error, inserted } = result;
  const title = line === null ? texts.transfer.failedWithin(...lines) : texts.transfer.failedAt(line);
  const said = error instanceof Error ? error : new Error(error.message);
  return html`
    <${Notice} kind="error" title=${title} error=${said}>
      <p>${texts.transfer.failedRequest(lines[0], lines[1], inserted)}</p>
    <//>
  `;
}

function isJson({ name, type }: File): boolean {
  return type === "application/json" || name.toLowerCase().endsWith(".json");
}

function recordsOf(file: File) {
  return readRecords(textOf(file.stream()), isJson(file) ? new JsonRecordReader() : new CsvRecordReader());
}

async function readPreview(file: File): Promise<Preview> {
  const reader = isJson(file) ? new JsonRecordReader() : new CsvRecordReader();
  const records: ImportRecord[] = [];
  for await (const part of readRecords(textOf(file.stream()), reader)) {
    records.push(...part);
    if (records.length >= PREVIEW_ROWS) break;
  }
  const names =
    reader instanceof CsvRecordReader
      ? reader.names
      : [...new Set(records.flatMap(({ values }) => Object.keys(values)))];
  return { names: names ?? [], records: records.slice(0, PREVIEW_ROWS) };
}

function previewText(value: unknown) {
  if (value == null) return html`<span class="quiet">${texts.editing.isNull}</span>`;
  return typeof value === "string" ? value : JSON.stringify(value);
}

function fileErrorText(error: Error): string {
  if (error instanceof JsonArrayError) return texts.transfer.noArray(error.line);
  return error instanceof CsvSyntaxError ? texts.transfer[error.reason](error.line) : error.message;
}

function optionsOf(choices: Readonly<Record<string, string>>) {
  return Object.entries(choices).map(([value, label]) => ({ value, label }));
}

import { useRef, useState } from "preact/hooks";
import { isAborted } from "../../api/http.ts";
import type { QueryParameter } from "../../api/rest-query.ts";
import { Button } from "../../components/button.ts";
import { Dialog } from "../../components/dialog.ts";
import { Checkbox } from "../../components/field.ts";
import { Notice } from "../../components/notice.ts";
import { saveFile } from "../../components/save-file.ts";
import { Select } from "../../components/select.ts";
import { html } from "../../html.ts";
import { formatBytes } from "../../texts/format.ts";
import { texts } from "../../texts.ts";
import type { RowChanger } from "../edit/row-changes.ts";
import { type ExportFormat, type ExportRequest, exportRows } from "./export-rows.ts";

type ExportDialogProps = {
  readonly context: {
    readonly changer: RowChanger;
    readonly columns: readonly string[];
    readonly filters: readonly QueryParameter[];
    readonly order: string;
  };
  readonly onClose: () => void;
};

/** The length of the parts of the file that are passed to the browser, which may keep them on disk. */
const PART_LENGTH = 1_000_000;

/** Exports all rows that match the filter. */
export function ExportDialog({ context, onClose }: ExportDialogProps) {
  const { table } = context.changer;
  const [format, setFormat] = useState<ExportFormat>("csv");
  const [forSpreadsheets, setForSpreadsheets] = useState(false);
  const [columns, setColumns] = useState<readonly string[]>(context.columns);
  const { received, error, start, cancel } = useExport(context, onClose);
  const toggle = (name: string, isOn: boolean) =>
    setColumns(
      table.columns.map((column) => column.name).filter((each) => (each === name ? isOn : columns.includes(each))),
    );
  const actions = html`
    <${Button} onClick=${cancel}>${texts.components.cancel}<//>
    <${Button} kind="primary" busy=${received !== null} disabled=${columns.length === 0} onClick=${() => start({ columns, format, forSpreadsheets })}>
      ${texts.transfer.download}
    <//>
  `;
  return html`
    <${Dialog} title=${texts.transfer.exportTitle(table.name)} onClose=${cancel} actions=${actions}>
      <${Select}
        label=${texts.transfer.format}
        value=${format}
        options=${Object.entries(texts.transfer.formats).map(([value, label]) => ({ value, label }))}
        onChange=${(value: string) => setFormat(value as ExportFormat)}
      />
      <fieldset class="editing-columns">
        <legend>${texts.transfer.columns}</legend>
        ${table.columns.map(
          ({ name }) =>
            html`<${Checkbox} key=${name} label=${name} checked=${columns.includes(name)} onChange=${(isOn: boolean) => toggle(name, isOn)} />`,
        )}
      </fieldset>
      ${
        format === "csv" &&
        html`
          <${Checkbox} label=${texts.transfer.forSpreadsheets} checked=${forSpreadsheets} onChange=${setForSpreadsheets} />
          <p class="quiet">${texts.transfer.forSpreadsheetsHint}</p>
        `
      }
      <p class="quiet">${texts.transfer.allRows}</p>
      ${received !== null && html`<p role="status">${texts.transfer.written(formatBytes(received))}</p>`}
      ${error && html`<${Notice} kind="error" error=${error} />`}
    <//>
  `;
}

type ExportChoices = Pick<ExportRequest, "columns" | "format" | "forSpreadsheets">;

/** Exports rows. `received` is the length of the text so far; null if no export runs. */
function useExport({ changer, filters, order }: ExportDialogProps["context"], onClose: () => void) {
  const [received, setReceived] = useState<number | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const running = useRef<AbortController | null>(null);
  const { schema, name: table } = changer.table;
  const start = async (choices: ExportChoices) => {
    const controller = new AbortController();
    running.current = controller;
    setError(null);
    setReceived(0);
    try {
      const file = await collect(
        { schema, table, filters, order, ...choices },
        changer,
        controller.signal,
        setReceived,
      );
      saveFile(`${table}.${choices.format}`, file);
      onClose();
    } catch (thrown) {
      if (!isAborted(thrown)) setError(thrown as Error);
      setReceived(null);
    }
  };
  const cancel = () => {
    running.current?.abort();
    onClose();
  };
  return { received, error, start, cancel };
}

async function collect(
  exported: ExportRequest,
  { send }: RowChanger,
  signal: AbortSignal,
  onProgress: (length: number) => void,
): Promise<Blob> {
  const parts: Blob[] = [];
  let pending: string[] = [];
  let [length, pendingLength] = [0, 0];
  for await (const piece of exportRows(exported, (path, options) => send(path, { ...options, signal }))) {
    pending.push(piece);
    pendingLength += piece.length;
    if (pendingLength < PART_LENGTH) continue;
    parts.push(new Blob(pending));
    length += pendingLength;
    [pending, pendingLength] = [[], 0];
    onProgress(length);
  }
  const type = exported.format === "csv" ? "text/csv;charset=utf-8" : "application/json";
  return new Blob([...parts, ...pending], { type });
}

import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "../../components/button.ts";
import { CodeEditor } from "../../components/code-editor.ts";
import { Dialog } from "../../components/dialog.ts";
import { Checkbox, Field } from "../../components/field.ts";
import { html } from "../../html.ts";
import { texts } from "../../texts.ts";
import type { EditedColumn } from "./edited-table.ts";
import { valueKind } from "./value-kind.ts";

type ValueDialogProps = {
  readonly column: EditedColumn;
  readonly value: string | null;
  readonly error: string | null;
  readonly isSaving: boolean;
  readonly onCommit: (value: string | null) => void;
  readonly onCancel: () => void;
};

/** Edits a value that needs several lines: long texts and JSON. */
export function ValueDialog({ column, value: before, error, isSaving, onCommit, onCancel }: ValueDialogProps) {
  const isJson = valueKind(column) === "json";
  const [value, setValue] = useState(isJson ? indentJson(before) : before);
  const commit = () => onCommit(value === indentJson(before) && isJson ? before : value);
  const actions = html`
    <${Button} onClick=${onCancel}>${texts.components.cancel}<//>
    <${Button} kind="primary" busy=${isSaving} onClick=${commit}>${texts.editing.save}<//>
  `;
  return html`
    <${Dialog} title=${texts.editing.valueOf(column.name)} size="wide" onClose=${onCancel} actions=${actions}>
      ${
        isJson
          ? html`<${JsonText} column=${column} value=${value ?? ""} error=${error} onChange=${setValue} onCommit=${commit} />`
          : html`<${LongText} column=${column} value=${value} error=${error} onChange=${setValue} onCommit=${commit} />`
      }
      ${
        column.nullable &&
        html`<${Checkbox} label=${texts.editing.setNull} checked=${value === null} onChange=${(isNull: boolean) => setValue(isNull ? null : "")} />`
      }
    <//>
  `;
}

type TextProps = {
  readonly column: EditedColumn;
  readonly value: string | null;
  readonly error: string | null;
  readonly onChange: (value: string) => void;
  readonly onCommit: () => void;
};

function JsonText({ column, value, error, onChange, onCommit }: TextProps) {
  return html`
    <${CodeEditor} label=${column.name} language="json" value=${value ?? ""} onChange=${onChange} keys=${{ "Mod-Enter": onCommit }} autofocus />
    ${error ? html`<p class="field-error" role="alert">${error}</p>` : html`<p class="field-hint">${texts.editing.longValue}</p>`}
  `;
}

function LongText({ column, value, error, onChange, onCommit }: TextProps) {
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => area.current!.focus(), []);
  const handleKey = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    onCommit();
  };
  const control = (attributes: Record<string, unknown>) => html`
    <textarea
      ...${attributes}
      ref=${area}
      rows="14"
      spellcheck=${false}
      placeholder=${value === null ? texts.editing.isNull : texts.editing.emptyText}
      value=${value ?? ""}
      onInput=${({ currentTarget }: { currentTarget: HTMLTextAreaElement }) => onChange(currentTarget.value)}
      onKeyDown=${handleKey}
    ></textarea>
  `;
  return html`<${Field} label=${column.name} hint=${texts.editing.longValue} error=${error} control=${control} />`;
}

/** Indents JSON if its numbers keep their text; otherwise returns it unchanged. */
function indentJson(text: string | null): string | null {
  if (text === null) return null;
  try {
    const indented = JSON.stringify(JSON.parse(text), null, 2);
    return withoutSpace(indented) === withoutSpace(text) ? indented : text;
  } catch {
    return text;
  }
}

function withoutSpace(json: string): string {
  return json.replace(/("(?:[^"\\]|\\.)*")|\s+/g, "$1");
}

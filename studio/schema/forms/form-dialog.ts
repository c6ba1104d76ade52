import { useState } from "preact/hooks";
import type { AppliedSql, RowsToCount } from "#operations/admin-types";
import { Button } from "../../components/button.ts";
import { CodeBlock } from "../../components/code-block.ts";
import { Dialog } from "../../components/dialog.ts";
import { Checkbox } from "../../components/field.ts";
import { type Children, html } from "../../html.ts";
import { texts } from "../../texts.ts";
import { ApplySqlDialog } from "./apply-sql-dialog.ts";

const words = texts.schemaForms;

/** The common properties of all forms. */
export type FormEvents = {
  readonly onClose: () => void;
  readonly onApplied?: (change: AppliedSql) => void;
};

type FormDialogProps = FormEvents & {
  readonly title: string;
  /** A short description of the change, for the name of its file. */
  readonly name: string;
  /** The statement; null until the form is filled in. */
  readonly sql: string | null;
  readonly counted?: RowsToCount;
  readonly children?: Children;
};

/** A form with the SQL that it makes; the next step tries and applies the SQL. */
export function FormDialog({ title, name, sql, counted, children, ...events }: FormDialogProps) {
  const [isReviewed, setReviewed] = useState(false);
  if (isReviewed && sql !== null) {
    const back = () => setReviewed(false);
    return html`<${ApplySqlDialog} title=${title} name=${name} sql=${sql} counted=${counted} onBack=${back} ...${events} />`;
  }
  const actions = html`
    <${Button} onClick=${events.onClose}>${texts.components.cancel}<//>
    <${Button} kind="primary" disabled=${sql === null || sql === ""} onClick=${() => setReviewed(true)}>${words.review}<//>
  `;
  return html`
    <${Dialog} title=${title} size="wide" onClose=${events.onClose} actions=${actions}>
      ${children}
      ${sql ? html`<${CodeBlock} text=${sql} label=${words.whatWillRun} wrap />` : html`<p class="quiet">${words.incomplete}</p>`}
    <//>
  `;
}

/** The state of a form, and the function that changes single fields. */
export function useForm<Form extends object>(initial: Form): [Form, (change: Partial<Form>) => void] {
  const [form, setForm] = useState(initial);
  return [form, (change) => setForm((before) => ({ ...before, ...change }))];
}

type ChoicesProps = {
  readonly label: string;
  readonly hint?: string;
  readonly options: readonly string[];
  readonly chosen: readonly string[];
  readonly onChange: (chosen: readonly string[]) => void;
};

/** Chooses several of a few options, in the order of the choices. */
export function Choices({ label, hint, options, chosen, onChange }: ChoicesProps) {
  const toggle = (option: string) => (isChecked: boolean) =>
    onChange(isChecked ? [...chosen, option] : chosen.filter((other) => other !== option));
  return html`
    <fieldset class="choices">
      <legend>${label}</legend>
      ${hint && html`<p class="field-hint">${hint}</p>`}
      <div class="row">
        ${options.map(
          (option) =>
            html`<${Checkbox} key=${option} label=${option} checked=${chosen.includes(option)} onChange=${toggle(option)} />`,
        )}
      </div>
    </fieldset>
  `;
}

/** Returns the non-empty lines of a text. */
export function linesOf(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

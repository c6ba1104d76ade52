import { useEffect, useState } from "preact/hooks";
import { type DatabaseDescription, requestRoles } from "../../api/catalog.ts";
import { parseExactly } from "../../api/exact-json.ts";
import { useCatalog } from "../../api/use-catalog.ts";
import { useLoaded } from "../../api/use-loaded.ts";
import { Button } from "../../components/button.ts";
import { CodeBlock } from "../../components/code-block.ts";
import { Dialog } from "../../components/dialog.ts";
import { Checkbox, TextArea, TextField } from "../../components/field.ts";
import { Notice } from "../../components/notice.ts";
import { Loading } from "../../components/page.ts";
import { Select } from "../../components/select.ts";
import { type Children, html } from "../../html.ts";
import { Choices, useForm } from "../../schema/forms/form-dialog.ts";
import { identifierOf } from "../../sql-text.ts";
import { texts } from "../../texts.ts";
import {
  formOf,
  type JobKind,
  NEW_SCHEDULE,
  NEW_WEBHOOK,
  readJob,
  type ScheduleForm,
  saveJob,
  WEBHOOK_EVENTS,
  type WebhookForm,
} from "./job-sql.ts";
import { runOwnerSql } from "./run-owner-sql.ts";

const words = texts.jobs;

type JobDialogProps = {
  readonly kind: JobKind;
  /** The name of the row; null for a new one. */
  readonly name: string | null;
  readonly onClose: () => void;
  /** Called when the row has been written. */
  readonly onSaved: () => void;
};

/** A form for a webhook or a schedule, filled in from its row. */
export function JobDialog({ kind, name, ...events }: JobDialogProps) {
  const catalog = useCatalog();
  const row = useLoaded((signal) => readRow(kind, name, signal), [kind, name]);
  const error = catalog.error ?? row.error;
  const title = name === null ? words.new[kind] : words.edit[kind](name);
  if (error || !catalog.value || row.value === null) {
    return html`
      <${Dialog} title=${title} onClose=${events.onClose}>
        ${error ? html`<${Notice} kind="error" error=${error} />` : html`<${Loading} />`}
      <//>
    `;
  }
  const Form = kind === "webhook" ? WebhookDialog : ScheduleDialog;
  return html`<${Form} title=${title} name=${name} row=${row.value} catalog=${catalog.value} ...${events} />`;
}

type Row = Readonly<Record<string, unknown>>;

async function readRow(kind: JobKind, name: string | null, signal: AbortSignal): Promise<Row> {
  if (name === null) return {};
  const text = await runOwnerSql(readJob(kind, name), { readOnly: true, signal });
  if (text === null) throw new Error(words.gone);
  return parseExactly(text) as Row;
}

type FormProps = Omit<JobDialogProps, "kind"> & {
  readonly title: string;
  readonly row: Row;
  readonly catalog: DatabaseDescription;
};

function WebhookDialog({ title, name, row, catalog, ...events }: FormProps) {
  const [form, change] = useForm<WebhookForm>(name === null ? NEW_WEBHOOK : formOf(NEW_WEBHOOK, row));
  const tables = catalog.tables.filter(({ exposed, kind }) => exposed && /table$/.test(kind)).map(identifierOf);
  const isComplete = [form.name, form.table_name, form.url].every((value) => value.trim() !== "");
  const sql = isComplete && form.events.length > 0 ? saveJob("webhook", form, name) : null;
  const text = (field: keyof WebhookForm, hint?: string) =>
    textField({
      label: words.fields[field],
      hint,
      value: String(form[field]),
      onInput: (value) => change({ [field]: value }),
    });
  return html`
    <${JobForm} title=${title} sql=${sql} showsResult=${name === null} ...${events}>
      <div class="form-grid">
        ${text("name", words.hints.name)}
        <${Select} label=${words.fields.table_name} value=${form.table_name} options=${withChosen(tables, form.table_name)}
          onChange=${(value: string) => change({ table_name: value })} />
        ${text("url", words.hints.url)} ${text("where", words.hints.where)}
        <${RoleField} catalog=${catalog} role=${form.role} onChange=${(role: string) => change({ role })} />
        ${text("claims", words.hints.claims)} ${text("max_attempts", words.hints.max_attempts)}
        ${text("timeout", words.hints.timeout)}
      </div>
      <${Choices} label=${words.fields.events} options=${WEBHOOK_EVENTS} chosen=${form.events}
        onChange=${(chosen: readonly string[]) => change({ events: WEBHOOK_EVENTS.filter((event) => chosen.includes(event)) })} />
    <//>
  `;
}

function ScheduleDialog({ title, name, row, catalog, ...events }: FormProps) {
  const [form, change] = useForm<ScheduleForm>(name === null ? NEW_SCHEDULE : formOf(NEW_SCHEDULE, row));
  const isComplete = [form.name, form.cron, form.function].every((value) => value.trim() !== "");
  const sql = isComplete ? saveJob("schedule", form, name) : null;
  const text = (field: keyof ScheduleForm, hint?: string) =>
    textField({
      label: words.fields[field],
      hint,
      value: String(form[field]),
      onInput: (value) => change({ [field]: value }),
    });
  return html`
    <${JobForm} title=${title} sql=${sql} showsResult=${false} ...${events}>
      <div class="form-grid">
        ${text("name", words.hints.name)} ${text("cron", words.hints.cron)} ${text("time_zone", words.hints.time_zone)}
        <${Select} label=${words.fields.function} value=${form.function} options=${withChosen(callableFunctions(catalog), form.function)}
          onChange=${(value: string) => change({ function: value })} />
        <${RoleField} catalog=${catalog} role=${form.role} onChange=${(role: string) => change({ role })} />
        ${text("time_limit", words.hints.time_limit)} ${text("claims", words.hints.claims)}
        <${Checkbox} label=${words.fields.catch_up} checked=${form.catch_up} onChange=${(value: boolean) => change({ catch_up: value })} />
      </div>
      <${TextArea} label=${words.fields.arguments} hint=${words.hints.arguments} rows=${2} value=${form.arguments}
        onInput=${(value: string) => change({ arguments: value })} />
    <//>
  `;
}

type TextFieldValues = { label: string; hint: string | undefined; value: string; onInput: (value: string) => void };

function textField(field: TextFieldValues): Children {
  return html`<${TextField} ...${field} autocomplete="off" />`;
}

type RoleFieldProps = {
  readonly catalog: DatabaseDescription;
  readonly role: string;
  readonly onChange: (role: string) => void;
};

function RoleField({ catalog, role, onChange }: RoleFieldProps) {
  return html`
    <${Select} label=${words.fields.role} hint=${words.hints.role} value=${role} options=${withChosen(requestRoles(catalog), role)} onChange=${onChange} />
  `;
}

/** Adds the chosen value if it is not offered, even if it is empty. */
function withChosen(options: readonly string[], chosen: string): readonly string[] {
  return options.includes(chosen) ? options : [chosen, ...options];
}

/** Returns the functions; an overloaded one has its types. */
function callableFunctions({ functions, schemas }: DatabaseDescription): readonly string[] {
  const internal = new Set(schemas.filter((schema) => schema.internal).map(({ name }) => name));
  const listed = functions.filter(
    ({ kind, returns, schema }) => kind === "function" && returns !== "trigger" && !internal.has(schema),
  );
  const isOverloaded = (name: string) => listed.filter((each) => identifierOf(each) === name).length > 1;
  return listed.map((called) => {
    const name = identifierOf(called);
    return isOverloaded(name) ? `${name}(${called.inputs.map(({ type }) => type).join(", ")})` : name;
  });
}

type JobFormProps = {
  readonly title: string;
  /** The statement; null until the form is filled in. */
  readonly sql: string | null;
  /** True if the dialog shows the value that the statement returns, a secret. */
  readonly showsResult: boolean;
  readonly onClose: () => void;
  readonly onSaved: () => void;
  readonly children?: Children;
};

/** Shows the SQL of the form, and runs it as the owner. */
function JobForm({ title, sql, showsResult, onClose, onSaved, children }: JobFormProps) {
  const [work, setWork] = useState<{ isBusy: boolean; error: Error | null; secret: string | null }>(IDLE);
  useEffect(() => setWork((before) => ({ ...before, error: null })), [sql]);
  const save = async () => {
    setWork({ ...IDLE, isBusy: true });
    try {
      const secret = await runOwnerSql(sql!);
      onSaved();
      if (showsResult && secret !== null) setWork({ ...IDLE, secret });
      else onClose();
    } catch (error) {
      setWork({ ...IDLE, error: error as Error });
    }
  };
  if (work.secret !== null) return html`<${SecretDialog} title=${title} secret=${work.secret} onClose=${onClose} />`;
  const actions = html`
    <${Button} onClick=${onClose}>${texts.components.cancel}<//>
    <${Button} kind="primary" busy=${work.isBusy} disabled=${sql === null} onClick=${save}>${words.save}<//>
  `;
  return html`
    <${Dialog} title=${title} size="wide" onClose=${onClose} actions=${actions}>
      ${children}
      ${sql === null ? html`<p class="quiet">${texts.schemaForms.incomplete}</p>` : html`<${CodeBlock} text=${sql} label=${texts.schemaForms.whatWillRun} wrap />`}
      <p class="field-hint">${words.inMigrations}</p>
      ${work.error && html`<${Notice} kind="error" error=${work.error} />`}
    <//>
  `;
}

const IDLE = { isBusy: false, error: null, secret: null };

type SecretDialogProps = { readonly title: string; readonly secret: string; readonly onClose: () => void };

function SecretDialog({ title, secret, onClose }: SecretDialogProps) {
  const actions = html`<${Button} kind="primary" onClick=${onClose}>${texts.components.close}<//>`;
  return html`
    <${Dialog} title=${title} onClose=${onClose} actions=${actions}>
      <p>${words.secretExplained}</p>
      <${CodeBlock} text=${secret} label=${words.secret} wrap />
    <//>
  `;
}

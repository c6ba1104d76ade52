import { type DatabaseDescription, type DescribedTable, nameKey } from "../../api/catalog.ts";
import { Checkbox, TextField } from "../../components/field.ts";
import { Select } from "../../components/select.ts";
import { html } from "../../html.ts";
import { joinName } from "../../sql-text.ts";
import { texts } from "../../texts.ts";
import { referencedTables, tableOptions } from "./column-fields.ts";
import { REFERENTIAL_ACTIONS, type ReferentialAction } from "./column-sql.ts";
import { addCheck, addForeignKey, addUnique, createIndex, INDEX_METHODS, type IndexForm } from "./constraint-sql.ts";
import { Choices, FormDialog, type FormEvents, useForm } from "./form-dialog.ts";
import { tableOfKey } from "./table-dialogs.ts";

const words = texts.schemaForms;

type ConstraintDialogProps = FormEvents & { readonly table: DescribedTable };

const columnNames = ({ columns }: DescribedTable) => columns.map(({ name }) => name);

/** Returns the typed name, or else one made of the table and its columns. */
function nameOr(name: string, table: DescribedTable, columns: readonly string[], ending: string): string {
  return name.trim() === "" ? joinName(table.name, ...columns, ending) : name;
}

type NameFieldProps = { readonly value: string; readonly fallback: string; readonly onInput: (name: string) => void };

function NameField({ value, fallback, onInput }: NameFieldProps) {
  return html`<${TextField} label=${words.name} value=${value} placeholder=${fallback} onInput=${onInput} />`;
}

const NEW_INDEX: IndexForm = {
  name: "",
  method: "btree",
  columns: [],
  expression: "",
  unique: false,
  where: "",
  concurrently: false,
};

export function IndexDialog({ table, ...events }: ConstraintDialogProps) {
  const [form, change] = useForm(NEW_INDEX);
  const name = nameOr(form.name, table, form.columns, form.unique ? "key" : "idx");
  const isComplete = form.columns.length > 0 || form.expression.trim() !== "";
  const sql = isComplete ? createIndex(table, { ...form, name }) : null;
  return html`
    <${FormDialog} title=${words.newIndex} name=${`create index ${name}`} sql=${sql} ...${events}>
      <${Choices} label=${words.columns} options=${columnNames(table)} chosen=${form.columns}
        onChange=${(columns: readonly string[]) => change({ columns })} />
      <div class="form-grid">
        <${NameField} value=${form.name} fallback=${name} onInput=${(text: string) => change({ name: text })} />
        <${Select} label=${words.method} value=${form.method} options=${INDEX_METHODS}
          onChange=${(method: IndexForm["method"]) => change({ method })} />
        <${TextField} label=${words.expression} hint=${words.expressionHint} value=${form.expression}
          onInput=${(text: string) => change({ expression: text })} />
        <${TextField} label=${words.where} hint=${words.whereHint} value=${form.where} onInput=${(where: string) => change({ where })} />
      </div>
      <${Checkbox} label=${words.unique} checked=${form.unique} onChange=${(unique: boolean) => change({ unique })} />
      <${Checkbox} label=${words.concurrently} checked=${form.concurrently} onChange=${(concurrently: boolean) => change({ concurrently })} />
      <p class="field-hint">${words.concurrentlyHint}</p>
    <//>
  `;
}

type ForeignKeyDialogProps = ConstraintDialogProps & { readonly catalog: DatabaseDescription };

type ForeignKeyState = {
  readonly name: string;
  readonly columns: readonly string[];
  readonly target: string;
  readonly targetColumns: readonly string[];
  readonly onDelete: ReferentialAction;
  readonly onUpdate: ReferentialAction;
  readonly notValid: boolean;
};

const NEW_FOREIGN_KEY: ForeignKeyState = {
  name: "",
  columns: [],
  target: "",
  targetColumns: [],
  onDelete: "no action",
  onUpdate: "no action",
  notValid: false,
};

export function ForeignKeyDialog({ catalog, table, ...events }: ForeignKeyDialogProps) {
  const [form, change] = useForm(NEW_FOREIGN_KEY);
  const target = tableOfKey(catalog, form.target);
  const name = nameOr(form.name, table, form.columns, "fkey");
  const isComplete = target && form.columns.length > 0 && form.columns.length === form.targetColumns.length;
  const sql = isComplete ? addForeignKey(table, { ...form, name, target }) : null;
  const chooseTarget = (key: string) =>
    change({ target: key, targetColumns: tableOfKey(catalog, key)?.primary_key ?? [] });
  return html`
    <${FormDialog} title=${words.newForeignKey} name=${`add ${name}`} sql=${sql} ...${events}>
      <${Choices} label=${words.columns} options=${columnNames(table)} chosen=${form.columns}
        onChange=${(columns: readonly string[]) => change({ columns })} />
      <${Select} label=${words.targetTable} value=${form.target} onChange=${chooseTarget}
        options=${[{ value: "", label: words.noReference }, ...tableOptions(referencedTables(catalog))]} />
      ${
        target &&
        html`<${Choices} key=${nameKey(target)} label=${words.targetColumns} options=${columnNames(target)} chosen=${form.targetColumns}
          onChange=${(targetColumns: readonly string[]) => change({ targetColumns })} />`
      }
      <div class="form-grid">
        <${NameField} value=${form.name} fallback=${name} onInput=${(text: string) => change({ name: text })} />
        <${Select} label=${words.onDelete} value=${form.onDelete} options=${REFERENTIAL_ACTIONS}
          onChange=${(onDelete: ReferentialAction) => change({ onDelete })} />
        <${Select} label=${words.onUpdate} value=${form.onUpdate} options=${REFERENTIAL_ACTIONS}
          onChange=${(onUpdate: ReferentialAction) => change({ onUpdate })} />
      </div>
      <${NotValid} checked=${form.notValid} onChange=${(notValid: boolean) => change({ notValid })} />
    <//>
  `;
}

export function CheckDialog({ table, ...events }: ConstraintDialogProps) {
  const [form, change] = useForm({ name: "", condition: "", notValid: false });
  const name = nameOr(form.name, table, [], "check");
  const sql = form.condition.trim() === "" ? null : addCheck(table, { ...form, name });
  return html`
    <${FormDialog} title=${words.newCheck} name=${`add ${name}`} sql=${sql} ...${events}>
      <${TextField} label=${words.condition} hint=${words.checkHint} value=${form.condition}
        onInput=${(condition: string) => change({ condition })} />
      <${NameField} value=${form.name} fallback=${name} onInput=${(text: string) => change({ name: text })} />
      <${NotValid} checked=${form.notValid} onChange=${(notValid: boolean) => change({ notValid })} />
    <//>
  `;
}

function NotValid(props: { readonly checked: boolean; readonly onChange: (checked: boolean) => void }) {
  return html`
    <${Checkbox} label=${words.notValid} ...${props} />
    <p class="field-hint">${words.notValidHint}</p>
  `;
}

export function UniqueDialog({ table, ...events }: ConstraintDialogProps) {
  const [form, change] = useForm<{ name: string; columns: readonly string[]; nullsNotDistinct: boolean }>({
    name: "",
    columns: [],
    nullsNotDistinct: false,
  });
  const name = nameOr(form.name, table, form.columns, "key");
  const sql = form.columns.length === 0 ? null : addUnique(table, { ...form, name });
  return html`
    <${FormDialog} title=${words.newUnique} name=${`add ${name}`} sql=${sql} ...${events}>
      <${Choices} label=${words.columns} options=${columnNames(table)} chosen=${form.columns}
        onChange=${(columns: readonly string[]) => change({ columns })} />
      <${NameField} value=${form.name} fallback=${name} onInput=${(text: string) => change({ name: text })} />
      <${Checkbox} label=${words.nullsNotDistinct} checked=${form.nullsNotDistinct}
        onChange=${(nullsNotDistinct: boolean) => change({ nullsNotDistinct })} />
    <//>
  `;
}

import { useState } from "preact/hooks";
import { type DatabaseDescription, type DescribedTable, type DescribedType, nameKey } from "../../api/catalog.ts";
import { Checkbox, TextArea, TextField } from "../../components/field.ts";
import { Select } from "../../components/select.ts";
import { html } from "../../html.ts";
import { navigate, pathTo } from "../../router.ts";
import { texts } from "../../texts.ts";
import { FormDialog, type FormEvents, linesOf, useForm } from "./form-dialog.ts";
import { addEnumLabel, commentOnTable, createEnum, renameTable } from "./table-sql.ts";

const words = texts.schemaForms;

type EditTableProps = FormEvents & { readonly table: DescribedTable };

export function EditTableDialog({ table, ...events }: EditTableProps) {
  const [form, change] = useForm({ name: table.name, comment: table.comment ?? "" });
  const renamed = { schema: table.schema, name: form.name };
  const sql = [
    ...(form.name === table.name ? [] : [renameTable(table, form.name)]),
    ...(form.comment === (table.comment ?? "") ? [] : [commentOnTable(renamed, form.comment)]),
  ].join("\n");
  const show = () => navigate(pathTo("schema", "table", table.schema, form.name), { replace: true });
  return html`
    <${FormDialog} title=${words.editTable} name=${`change ${table.name}`} sql=${form.name.trim() === "" ? null : sql} ...${events} onApplied=${show}>
      <${TextField} label=${words.name} value=${form.name} onInput=${(name: string) => change({ name })} />
      <${TextField} label=${words.comment} hint=${words.commentHint} value=${form.comment} onInput=${(comment: string) => change({ comment })} />
    <//>
  `;
}

export type DropProps = FormEvents & {
  readonly title: string;
  readonly name: string;
  readonly makeSql: (options: { readonly cascade: boolean }) => string;
};

/** Drops one object, with or without its dependents. */
export function DropDialog({ title, name, makeSql, ...events }: DropProps) {
  const [cascade, setCascade] = useState(false);
  return html`
    <${FormDialog} title=${title} name=${name} sql=${makeSql({ cascade })} ...${events}>
      <p>${words.dropHint}</p>
      <${Checkbox} label=${words.cascade} checked=${cascade} onChange=${setCascade} />
    <//>
  `;
}

type CreateEnumProps = FormEvents & { readonly schema: string };

export function CreateEnumDialog({ schema, ...events }: CreateEnumProps) {
  const [form, change] = useForm({ name: "", labels: "" });
  const labels = linesOf(form.labels);
  const sql = form.name.trim() === "" || labels.length === 0 ? null : createEnum({ schema, name: form.name, labels });
  return html`
    <${FormDialog} title=${words.newEnum} name=${`create type ${form.name}`} sql=${sql} ...${events}>
      <${TextField} label=${words.name} value=${form.name} onInput=${(name: string) => change({ name })} />
      <${TextArea} label=${words.labels} hint=${words.labelsHint} rows=${6} value=${form.labels} onInput=${(text: string) => change({ labels: text })} />
    <//>
  `;
}

type AddLabelProps = FormEvents & { readonly type: DescribedType };

export function AddLabelDialog({ type, ...events }: AddLabelProps) {
  const [form, change] = useForm({ label: "", after: "" });
  const sql = form.label === "" ? null : addEnumLabel(type, form.label, form.after === "" ? null : form.after);
  return html`
    <${FormDialog} title=${words.newLabel} name=${`add ${type.name} ${form.label}`} sql=${sql} ...${events}>
      <${TextField} label=${words.label} value=${form.label} onInput=${(label: string) => change({ label })} />
      <${Select} label=${words.after} value=${form.after} onChange=${(after: string) => change({ after })}
        options=${[{ value: "", label: words.atTheEnd }, ...type.labels.map((value) => ({ value }))]} />
    <//>
  `;
}

/** Finds the table of a key, the value in a select. */
export function tableOfKey({ tables }: DatabaseDescription, key: string): DescribedTable | undefined {
  return tables.find((table) => nameKey(table) === key);
}

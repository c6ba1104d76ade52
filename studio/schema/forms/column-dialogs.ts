import type { DatabaseDescription, DescribedColumn, DescribedTable } from "../../api/catalog.ts";
import { Checkbox, TextField } from "../../components/field.ts";
import { html } from "../../html.ts";
import { texts } from "../../texts.ts";
import { ColumnFields, TypeField } from "./column-fields.ts";
import { addColumn, alterColumn, type ColumnState, NEW_COLUMN } from "./column-sql.ts";
import { FormDialog, type FormEvents, useForm } from "./form-dialog.ts";

const words = texts.schemaForms;

type AddColumnProps = FormEvents & { readonly catalog: DatabaseDescription; readonly table: DescribedTable };

export function AddColumnDialog({ catalog, table, ...events }: AddColumnProps) {
  const [column, change] = useForm(NEW_COLUMN);
  const sql = column.name.trim() === "" || column.type.trim() === "" ? null : addColumn(table, column);
  return html`
    <${FormDialog} title=${words.addColumn} name=${`add ${table.name} ${column.name}`} sql=${sql} ...${events}>
      <${ColumnFields} column=${column} catalog=${catalog} onChange=${change} />
    <//>
  `;
}

type EditColumnProps = AddColumnProps & { readonly column: DescribedColumn };

export function EditColumnDialog({ catalog, table, column, ...events }: EditColumnProps) {
  const from: ColumnState = {
    name: column.name,
    type: column.type,
    default: column.default ?? "",
    notNull: !column.nullable,
    comment: column.comment ?? "",
  };
  const [form, change] = useForm({ ...from, using: "" });
  const { using, ...to } = form;
  const isComputed = column.identity !== null || column.generated !== null;
  const sql = form.name.trim() === "" || form.type.trim() === "" ? null : alterColumn(table, { from, to, using });
  return html`
    <${FormDialog} title=${words.editColumn(column.name)} name=${`change ${table.name} ${column.name}`} sql=${sql} ...${events}>
      <div class="form-grid">
        <${TextField} label=${words.name} value=${form.name} onInput=${(name: string) => change({ name })} />
        <${TypeField} value=${form.type} catalog=${catalog} onInput=${(type: string) => change({ type })} />
        ${
          form.type !== from.type &&
          html`<${TextField} label=${words.using} hint=${words.usingHint} value=${using} onInput=${(text: string) => change({ using: text })} />`
        }
        <${TextField} label=${words.default} hint=${words.defaultHint} value=${form.default} disabled=${isComputed}
          onInput=${(value: string) => change({ default: value })} />
        <${TextField} label=${words.comment} hint=${words.commentHint} value=${form.comment} onInput=${(comment: string) => change({ comment })} />
        <${Checkbox} label=${words.notNull} checked=${form.notNull} disabled=${isComputed} onChange=${(notNull: boolean) => change({ notNull })} />
      </div>
    <//>
  `;
}

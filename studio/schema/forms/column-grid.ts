import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { DatabaseDescription } from "../../api/catalog.ts";
import { Button, IconButton } from "../../components/button.ts";
import { Checkbox, TextField } from "../../components/field.ts";
import { type Children, html } from "../../html.ts";
import { texts } from "../../texts.ts";
import { RareColumnFields, TypeField } from "./column-fields.ts";
import { type ColumnForm, NEW_COLUMN } from "./column-sql.ts";

const words = texts.schemaForms;

type ColumnGridForm = { readonly columns: readonly ColumnForm[]; readonly primaryKey: readonly string[] };

type ColumnGridProps = {
  readonly form: ColumnGridForm;
  readonly catalog: DatabaseDescription;
  readonly onChange: (change: Partial<ColumnGridForm>) => void;
};

/** A grid with a row for each column of a new table; rarely needed fields are shown for one column at a time. */
export function ColumnGrid({ form, catalog, onChange }: ColumnGridProps) {
  const { columns, primaryKey } = form;
  const { list, open, setOpen, add, remove, changeColumn, setKey } = useColumnList(form, onChange);
  const heads = [words.name, words.type, words.default, words.notNull, words.unique, words.primaryKey, ""];
  return html`
    <fieldset class="column-list" ref=${list}>
      <legend>${words.columns}</legend>
      <div class="scroll-x" tabindex="0" role="group" aria-label=${words.columns}>
        <table class="plain-table column-grid">
          <thead>
            <tr>${heads.map((head) => (head ? html`<th scope="col">${head}</th>` : html`<td></td>`))}</tr>
          </thead>
          <tbody>
            ${columns.map(
              (column, index) => html`
                <${ColumnRow} key=${index} number=${index + 1} column=${column} catalog=${catalog} isOpen=${open === index}
                  isKey=${column.name !== "" && primaryKey.includes(column.name)} setKey=${setKey(column.name)}
                  onChange=${changeColumn(index)} onRemove=${() => remove(index)}
                  onOpen=${() => setOpen(open === index ? null : index)} />
              `,
            )}
          </tbody>
        </table>
      </div>
      <${Button} size="small" icon="plus" onClick=${add}>${words.addColumn}<//>
    </fieldset>
  `;
}

/** Returns the list of columns; a new row gets the focus. */
function useColumnList({ columns, primaryKey }: ColumnGridForm, onChange: ColumnGridProps["onChange"]) {
  const [open, setOpen] = useState<number | null>(null);
  const list = useRef<HTMLFieldSetElement>(null);
  const isAdded = useRef(false);
  useLayoutEffect(() => {
    if (isAdded.current) list.current?.querySelector<HTMLInputElement>("tbody > tr:last-child input")?.focus();
    isAdded.current = false;
  }, [columns.length]);
  const changeColumn = (index: number) => (change: Partial<ColumnForm>) => {
    const before = columns[index]!;
    const renamed =
      change.name === undefined ? primaryKey : primaryKey.map((name) => (name === before.name ? change.name! : name));
    onChange({ columns: columns.with(index, { ...before, ...change }), primaryKey: renamed });
  };
  const add = () => {
    isAdded.current = true;
    setOpen(null);
    onChange({ columns: [...columns, NEW_COLUMN] });
  };
  const remove = (index: number) => {
    const { name } = columns[index]!;
    setOpen(null);
    onChange({ columns: columns.toSpliced(index, 1), primaryKey: primaryKey.filter((other) => other !== name) });
  };
  const setKey = (name: string) => (isKey: boolean) =>
    onChange({ primaryKey: isKey ? [...primaryKey, name] : primaryKey.filter((other) => other !== name) });
  return { list, open, setOpen, add, remove, changeColumn, setKey };
}

type ColumnRowProps = Pick<ColumnGridProps, "catalog"> & {
  readonly number: number;
  readonly column: ColumnForm;
  readonly isOpen: boolean;
  readonly isKey: boolean;
  readonly setKey: (isKey: boolean) => void;
  readonly onChange: (change: Partial<ColumnForm>) => void;
  readonly onRemove: () => void;
  readonly onOpen: () => void;
};

function ColumnRow({ number, column, catalog, isOpen, isKey, setKey, onChange, onRemove, onOpen }: ColumnRowProps) {
  const name = column.name || words.columnNumber(number);
  // The label has the column's number, because a label that changes while the name is typed would be read aloud at each key.
  const labelOf = (field: string) => words.fieldOfColumn(field, words.columnNumber(number));
  const isComputed = column.identity !== "";
  const check = (label: string, checked: boolean, change: (checked: boolean) => void, disabled = false): Children =>
    html`<td><${Checkbox} label=${labelOf(label)} hideLabel checked=${checked} disabled=${disabled} onChange=${change} /></td>`;
  return html`
    <tr>
      <td><${TextField} label=${labelOf(words.name)} hideLabel value=${column.name} onInput=${(value: string) => onChange({ name: value })} /></td>
      <td><${TypeField} label=${labelOf(words.type)} hideLabel value=${column.type} catalog=${catalog} onInput=${(type: string) => onChange({ type })} /></td>
      <td>
        <${TextField} label=${labelOf(words.default)} hideLabel value=${column.default} disabled=${isComputed}
          onInput=${(value: string) => onChange({ default: value })} />
      </td>
      ${check(words.notNull, column.notNull, (notNull) => onChange({ notNull }), isComputed)}
      ${check(words.unique, column.unique, (unique) => onChange({ unique }))}
      ${check(words.primaryKey, isKey, setKey, column.name === "")}
      <td>
        <div class="row">
          <${IconButton} icon="more" size="small" label=${words.moreOfColumn(name)} pressed=${isOpen} onClick=${onOpen} />
          <${IconButton} icon="close" size="small" label=${words.removeColumn(name)} onClick=${onRemove} />
        </div>
      </td>
    </tr>
    ${
      isOpen &&
      html`
        <tr>
          <td colspan="7" class="rare-fields">
            <div class="form-grid"><${RareColumnFields} column=${column} catalog=${catalog} onChange=${onChange} /></div>
          </td>
        </tr>
      `
    }
  `;
}

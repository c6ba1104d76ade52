import { useState } from "preact/hooks";
import type {
  DatabaseDescription,
  DescribedColumn,
  DescribedConstraint,
  DescribedIndex,
  DescribedPolicy,
  DescribedTable,
  DescribedType,
} from "../../api/catalog.ts";
import { Button } from "../../components/button.ts";
import { Menu, type MenuItem } from "../../components/menu.ts";
import { type Children, html } from "../../html.ts";
import { texts } from "../../texts.ts";
import { ApplySqlDialog } from "./apply-sql-dialog.ts";
import { AddColumnDialog, EditColumnDialog } from "./column-dialogs.ts";
import { dropColumn } from "./column-sql.ts";
import { CheckDialog, ForeignKeyDialog, IndexDialog, UniqueDialog } from "./constraint-dialogs.ts";
import { dropConstraint, dropIndex, validateConstraint } from "./constraint-sql.ts";
import { CreateTableDialog } from "./create-table-dialog.ts";
import type { FormEvents } from "./form-dialog.ts";
import { GrantsDialog, PolicyDialog } from "./policy-dialogs.ts";
import { dropPolicy, setRowSecurity } from "./policy-sql.ts";
import { AddLabelDialog, CreateEnumDialog, DropDialog, type DropProps, EditTableDialog } from "./table-dialogs.ts";
import { dropTable, publishTable } from "./table-sql.ts";

const words = texts.schemaForms;

/** Renders an open form. */
type OpenForm = (events: FormEvents) => Children;

type FormItem = Omit<MenuItem, "onSelect"> & { readonly form: OpenForm };

/** A menu whose items open forms. */
function FormMenu({ label, items }: { readonly label: string; readonly items: readonly FormItem[] }) {
  const [open, setOpen] = useState<{ readonly form: OpenForm } | null>(null);
  const entries = items.map(({ form, ...item }) => ({ ...item, onSelect: () => setOpen({ form }) }));
  return html`
    <${Menu} label=${label} items=${entries} />
    ${open?.form({ onClose: () => setOpen(null) })}
  `;
}

type InTable = { readonly catalog: DatabaseDescription; readonly table: DescribedTable };

/** The menu of a table. */
export function TableMenu({ catalog, table }: InTable) {
  const props = { catalog, table };
  const isSecured = table.row_security !== "off";
  const security = isSecured ? words.disableRowSecurity : words.enableRowSecurity;
  const items: FormItem[] = [
    { label: words.addColumn, form: (events) => html`<${AddColumnDialog} ...${props} ...${events} />` },
    { label: words.newIndex, form: (events) => html`<${IndexDialog} ...${props} ...${events} />` },
    { label: words.newForeignKey, form: (events) => html`<${ForeignKeyDialog} ...${props} ...${events} />` },
    { label: words.newCheck, form: (events) => html`<${CheckDialog} ...${props} ...${events} />` },
    { label: words.newUnique, form: (events) => html`<${UniqueDialog} ...${props} ...${events} />` },
    { label: words.newPolicy, form: (events) => html`<${PolicyDialog} ...${props} policy=${null} ...${events} />` },
    { label: words.grants, form: (events) => html`<${GrantsDialog} ...${props} ...${events} />` },
    { label: security, form: sqlForm(security, table.name, setRowSecurity(table, { isEnabled: !isSecured })) },
    ...(table.published
      ? []
      : [{ label: words.publishTable, form: sqlForm(words.publishTable, table.name, publishTable(table)) }]),
    { label: words.editTable, form: (events) => html`<${EditTableDialog} table=${table} ...${events} />` },
    dropItem({
      title: words.dropTable(table.name),
      name: `drop table ${table.name}`,
      makeSql: (options) => dropTable(table, options),
    }),
  ];
  return html`<${FormMenu} label=${words.menu(table.name)} items=${items} />`;
}

export function ColumnMenu({ catalog, table, column }: InTable & { readonly column: DescribedColumn }) {
  const items: FormItem[] = [
    {
      label: words.edit,
      form: (events) => html`<${EditColumnDialog} catalog=${catalog} table=${table} column=${column} ...${events} />`,
    },
    dropItem({
      title: words.dropColumn(column.name),
      name: `drop ${table.name} ${column.name}`,
      makeSql: (options) => dropColumn(table, column.name, options),
    }),
  ];
  return html`<${FormMenu} label=${words.menu(column.name)} items=${items} />`;
}

export function PolicyMenu({ catalog, table, policy }: InTable & { readonly policy: DescribedPolicy }) {
  const { name } = policy;
  const title = words.dropPolicy(name);
  const items: FormItem[] = [
    {
      label: words.edit,
      form: (events) => html`<${PolicyDialog} catalog=${catalog} table=${table} policy=${policy} ...${events} />`,
    },
    { label: words.drop, isDangerous: true, form: sqlForm(title, `drop policy ${name}`, dropPolicy(table, name)) },
  ];
  return html`<${FormMenu} label=${words.menu(name)} items=${items} />`;
}

type ConstraintMenuProps = { readonly table: DescribedTable; readonly constraint: DescribedConstraint };

export function ConstraintMenu({ table, constraint: { name, valid } }: ConstraintMenuProps) {
  const title = words.validate(name);
  const items: FormItem[] = [
    ...(valid ? [] : [{ label: title, form: sqlForm(title, `validate ${name}`, validateConstraint(table, name)) }]),
    dropItem({
      title: words.dropConstraint(name),
      name: `drop ${name}`,
      makeSql: (options) => dropConstraint(table, name, options),
    }),
  ];
  return html`<${FormMenu} label=${words.menu(name)} items=${items} />`;
}

/** The menu of an index. An index of a constraint is dropped with the constraint. */
export function IndexMenu({ table, index }: { readonly table: DescribedTable; readonly index: DescribedIndex }) {
  if (index.constraint !== null) return null;
  const title = words.dropIndex(index.name);
  const sql = dropIndex({ schema: table.schema, name: index.name }, { concurrently: false });
  const items = [{ label: words.drop, isDangerous: true, form: sqlForm(title, `drop index ${index.name}`, sql) }];
  return html`<${FormMenu} label=${words.menu(index.name)} items=${items} />`;
}

export function TypeMenu({ type }: { readonly type: DescribedType }) {
  if (type.kind !== "enum") return null;
  const items = [
    { label: words.newLabel, form: (events: FormEvents) => html`<${AddLabelDialog} type=${type} ...${events} />` },
  ];
  return html`<${FormMenu} label=${words.menu(type.name)} items=${items} />`;
}

type CreateProps = { readonly catalog: DatabaseDescription; readonly schema?: string };

/** Opens the form of a new table. */
export function CreateTableButton({ catalog, schema = "public" }: CreateProps) {
  const [isOpen, setOpen] = useState(false);
  const close = () => setOpen(false);
  return html`
    <${Button} kind="primary" icon="plus" onClick=${() => setOpen(true)}>${words.newTable}<//>
    ${isOpen && html`<${CreateTableDialog} catalog=${catalog} schema=${schema} onClose=${close} />`}
  `;
}

/** Opens the form of a new enum type. */
export function CreateEnumButton({ schema = "public" }: Omit<CreateProps, "catalog">) {
  const [isOpen, setOpen] = useState(false);
  const close = () => setOpen(false);
  return html`
    <${Button} onClick=${() => setOpen(true)}>${words.newEnum}<//>
    ${isOpen && html`<${CreateEnumDialog} schema=${schema} onClose=${close} />`}
  `;
}

function sqlForm(title: string, name: string, sql: string): OpenForm {
  return (events) => html`<${ApplySqlDialog} title=${title} name=${`${title} ${name}`} sql=${sql} ...${events} />`;
}

function dropItem(props: Pick<DropProps, "title" | "name" | "makeSql">): FormItem {
  return {
    label: words.drop,
    isDangerous: true,
    form: (events) => html`<${DropDialog} ...${props} ...${events} />`,
  };
}

import { useId } from "preact/hooks";
import { type DatabaseDescription, type DescribedTable, nameKey, shortName } from "../../api/catalog.ts";
import { Checkbox, TextField } from "../../components/field.ts";
import { Select } from "../../components/select.ts";
import { html } from "../../html.ts";
import { quoteTable } from "../../sql-text.ts";
import { texts } from "../../texts.ts";
import { type ColumnForm, type ColumnReference, REFERENTIAL_ACTIONS, type ReferentialAction } from "./column-sql.ts";

const words = texts.schemaForms;

/** The usual types; users can type any other. */
const TYPES = [
  "text",
  "bigint",
  "integer",
  "numeric",
  "double precision",
  "boolean",
  "uuid",
  "timestamptz",
  "date",
  "time",
  "interval",
  "jsonb",
  "bytea",
  "inet",
  "text[]",
];

/** Returns the types to choose from, with the enums and domains of the database. */
export function typeNames({ types, schemas }: Pick<DatabaseDescription, "types" | "schemas">): string[] {
  const isOwn = (schema: string) => schemas.some(({ name, internal }) => name === schema && !internal);
  return [...TYPES, ...types.filter((type) => isOwn(type.schema) && type.kind !== "multirange").map(quoteTable)];
}

type ColumnFieldsProps = {
  readonly column: ColumnForm;
  readonly catalog: DatabaseDescription;
  readonly onChange: (change: Partial<ColumnForm>) => void;
};

/** The fields of a new column. */
export function ColumnFields({ column, catalog, onChange }: ColumnFieldsProps) {
  const { identity } = column;
  return html`
    <div class="form-grid">
      <${TextField} label=${words.name} value=${column.name} onInput=${(name: string) => onChange({ name })} />
      <${TypeField} value=${column.type} catalog=${catalog} onInput=${(type: string) => onChange({ type })} />
      <${TextField} label=${words.default} hint=${words.defaultHint} value=${column.default} disabled=${identity !== ""}
        onInput=${(value: string) => onChange({ default: value })} />
      <${RareColumnFields} column=${column} catalog=${catalog} onChange=${onChange} />
      <div class="row">
        <${Checkbox} label=${words.notNull} checked=${column.notNull} disabled=${identity !== ""} onChange=${(notNull: boolean) => onChange({ notNull })} />
        <${Checkbox} label=${words.unique} checked=${column.unique} onChange=${(unique: boolean) => onChange({ unique })} />
      </div>
    </div>
  `;
}

/** The fields that most columns do not need. */
export function RareColumnFields({ column, catalog, onChange }: ColumnFieldsProps) {
  const identities = Object.entries(words.identities).map(([value, label]) => ({ value, label }));
  return html`
    <${Select} label=${words.identity} value=${column.identity} options=${identities}
      onChange=${(value: ColumnForm["identity"]) => onChange({ identity: value, notNull: value !== "" || column.notNull })} />
    <${TextField} label=${words.check} hint=${words.checkHint} value=${column.check} onInput=${(check: string) => onChange({ check })} />
    <${TextField} label=${words.comment} hint=${words.commentHint} value=${column.comment} onInput=${(comment: string) => onChange({ comment })} />
    <${ReferenceFields} reference=${column.references} catalog=${catalog}
      onChange=${(references: ColumnReference | null) => onChange(changeReference(column, references, catalog))} />
  `;
}

/** Changes the reference. The column gets the type of the column that it refers to. */
function changeReference(
  column: ColumnForm,
  references: ColumnReference | null,
  { tables }: DatabaseDescription,
): Partial<ColumnForm> {
  if (!references) return { references };
  const target = tables.find((table) => nameKey(table) === nameKey(references.table));
  return { references, type: target?.columns.find(({ name }) => name === references.column)?.type ?? column.type };
}

type TypeFieldProps = {
  readonly label?: string;
  readonly hideLabel?: boolean;
  readonly value: string;
  readonly catalog: DatabaseDescription;
  readonly onInput: (type: string) => void;
};

export function TypeField({ label = words.type, hideLabel = false, value, catalog, onInput }: TypeFieldProps) {
  const id = useId();
  return html`
    <${TextField} label=${label} hideLabel=${hideLabel} value=${value} list=${id} onInput=${onInput} />
    <datalist id=${id}>${typeNames(catalog).map((type) => html`<option key=${type} value=${type} />`)}</datalist>
  `;
}

type ReferenceFieldsProps = {
  readonly reference: ColumnReference | null;
  readonly catalog: DatabaseDescription;
  readonly onChange: (reference: ColumnReference | null) => void;
};

function ReferenceFields({ reference, catalog, onChange }: ReferenceFieldsProps) {
  const tables = referencedTables(catalog);
  const target = reference && tables.find((table) => nameKey(table) === nameKey(reference.table));
  const chooseTable = (key: string) => {
    const table = tables.find((each) => nameKey(each) === key);
    const { schema = "", name = "" } = table ?? {};
    const column = table ? uniqueColumns(table)[0] : undefined;
    onChange(
      column === undefined ? null : { table: { schema, name }, column, onDelete: reference?.onDelete ?? "no action" },
    );
  };
  return html`
    <${Select} label=${words.references} value=${reference ? nameKey(reference.table) : ""} onChange=${chooseTable}
      options=${[{ value: "", label: words.noReference }, ...tableOptions(tables)]} />
    ${
      reference &&
      html`
        <${Select} label=${words.column} value=${reference.column} options=${target ? uniqueColumns(target) : []}
          onChange=${(column: string) => onChange({ ...reference, column })} />
        <${Select} label=${words.onDelete} value=${reference.onDelete} options=${REFERENTIAL_ACTIONS}
          onChange=${(onDelete: ReferentialAction) => onChange({ ...reference, onDelete })} />
      `
    }
  `;
}

/** Returns the tables that a foreign key can refer to: the accounts, and all that are not the service's own. */
export function referencedTables({ tables, schemas }: DatabaseDescription): DescribedTable[] {
  const internal = new Set(schemas.filter((schema) => schema.internal).map(({ name }) => name));
  const isOffered = ({ schema, name }: DescribedTable) =>
    !internal.has(schema) || (schema === "auth" && name === "users");
  return tables.filter((table) => /table$/.test(table.kind) && table.constraints.some(isKey) && isOffered(table));
}

export function tableOptions(tables: readonly DescribedTable[]) {
  return tables.map((table) => ({ value: nameKey(table), label: shortName(table) }));
}

/** Returns the single columns with unique values; the primary key first. */
function uniqueColumns({ constraints }: DescribedTable): string[] {
  const keys = constraints.filter((constraint) => isKey(constraint) && constraint.columns.length === 1);
  return [...new Set(keys.sort(({ kind }) => (kind === "primary key" ? -1 : 1)).flatMap(({ columns }) => columns))];
}

function isKey({ kind }: DescribedTable["constraints"][number]): boolean {
  return kind === "primary key" || kind === "unique";
}

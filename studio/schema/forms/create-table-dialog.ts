import { type DatabaseDescription, nameKey } from "../../api/catalog.ts";
import { Checkbox, TextArea, TextField } from "../../components/field.ts";
import { Select } from "../../components/select.ts";
import { html } from "../../html.ts";
import { navigate, pathTo } from "../../router.ts";
import { texts } from "../../texts.ts";
import { tableOptions } from "./column-fields.ts";
import { ColumnGrid } from "./column-grid.ts";
import { type ColumnForm, NEW_COLUMN } from "./column-sql.ts";
import { FormDialog, type FormEvents, linesOf, useForm } from "./form-dialog.ts";
import { type Membership, POLICY_TEMPLATES, type PolicyTemplate } from "./policy-sql.ts";
import { tableOfKey } from "./table-dialogs.ts";
import { createTable, type TableForm } from "./table-sql.ts";

const words = texts.schemaForms;

type CreateTableProps = FormEvents & {
  readonly catalog: DatabaseDescription;
  /** The schema that is chosen first. */
  readonly schema: string;
};

type TableState = Pick<TableForm, "schema" | "name" | "comment" | "columns" | "primaryKey" | "publish"> & {
  readonly checks: string;
  readonly template: PolicyTemplate;
  readonly owner: string;
  readonly membership: Membership;
};

const KEY: ColumnForm = { ...NEW_COLUMN, name: "id", type: "bigint", identity: "always", notNull: true };

/** Creates a table, and shows it afterwards. */
export function CreateTableDialog({ catalog, schema, ...events }: CreateTableProps) {
  const [form, change] = useForm<TableState>({
    schema,
    name: "",
    comment: "",
    columns: [KEY],
    primaryKey: [KEY.name],
    publish: false,
    checks: "",
    template: "everybody reads",
    owner: "",
    membership: { column: "", table: { schema: "", name: "" }, organisation: "", user: "" },
  });
  const schemas = catalog.schemas.filter(({ internal }) => !internal).map(({ name }) => name);
  const show = () => navigate(pathTo("schema", "table", form.schema, form.name));
  return html`
    <${FormDialog} title=${words.newTable} name=${`create table ${form.name}`} sql=${isComplete(form) ? sqlOf(form, catalog) : null} ...${events} onApplied=${show}>
      <div class="form-grid">
        <${Select} label=${words.schema} value=${form.schema} options=${schemas} onChange=${(name: string) => change({ schema: name })} />
        <${TextField} label=${words.name} value=${form.name} onInput=${(name: string) => change({ name })} />
        <${TextField} label=${words.comment} hint=${words.commentHint} value=${form.comment} onInput=${(comment: string) => change({ comment })} />
      </div>
      <${ColumnGrid} form=${form} catalog=${catalog} onChange=${change} />
      <${TextArea} label=${words.tableChecks} hint=${words.tableChecksHint} rows=${2} value=${form.checks} onInput=${(checks: string) => change({ checks })} />
      <${AccessFields} form=${form} catalog=${catalog} onChange=${change} />
      <${Checkbox} label=${words.publish} checked=${form.publish} onChange=${(publish: boolean) => change({ publish })} />
    <//>
  `;
}

function isComplete({ name, columns, template, owner, membership }: TableState): boolean {
  const hasAccess =
    template === "owner reads and writes"
      ? columns.some((column) => column.name === owner)
      : template !== "members read and write" ||
        (membership.column !== "" && membership.user !== "" && membership.organisation !== "");
  return (
    name.trim() !== "" && hasAccess && columns.every((column) => column.name.trim() !== "" && column.type.trim() !== "")
  );
}

function sqlOf({ template, owner, membership, checks, ...table }: TableState, { roles }: DatabaseDescription): string {
  const access = { template, owner, membership, roles: roles.map(({ name }) => name) };
  return createTable({ ...table, checks: linesOf(checks), access });
}

type PartProps = {
  readonly form: TableState;
  readonly catalog: DatabaseDescription;
  readonly onChange: (change: Partial<TableState>) => void;
};

const OWNER = "user_id";

/** Chooses a template; for rows with an owner it adds the column. */
function chooseTemplate(
  { columns, owner }: TableState,
  template: PolicyTemplate,
  catalog: DatabaseDescription,
): Partial<TableState> {
  if (template !== "owner reads and writes" || columns.some(({ name }) => name === owner)) return { template };
  const hasColumn = columns.some(({ name }) => name === OWNER);
  return { template, owner: OWNER, columns: hasColumn ? columns : [...columns, ownerColumn(catalog)] };
}

/** Makes a column with the type of `auth.uid()`: the number of an account, or its uuid. */
function ownerColumn({ functions, tables }: DatabaseDescription): ColumnForm {
  const type = functions.find(({ schema, name }) => schema === "auth" && name === "uid")?.returns ?? "uuid";
  const users = tables.find(({ schema, name }) => schema === "auth" && name === "users");
  const column = ["user_id", "id"].find((name) =>
    users?.columns.some((each) => each.name === name && each.type === type),
  );
  const references: ColumnForm["references"] =
    column === undefined ? null : { table: { schema: "auth", name: "users" }, column, onDelete: "cascade" };
  return { ...NEW_COLUMN, name: OWNER, type, default: "auth.uid()", notNull: true, references };
}

/** The fields that choose the readers and writers of the rows. */
function AccessFields({ form, catalog, onChange }: PartProps) {
  const { template, owner, columns, membership } = form;
  const names = columns.map(({ name }) => name).filter((name) => name !== "");
  const members = tableOfKey(catalog, nameKey(membership.table));
  const memberColumns = ["", ...(members?.columns.map(({ name }) => name) ?? [])];
  const changeMembership = (change: Partial<Membership>) => onChange({ membership: { ...membership, ...change } });
  const choice = (
    label: string,
    value: string,
    options: readonly string[],
    change: (value: string) => void,
    hint?: string,
  ) => html`<${Select} label=${label} hint=${hint} value=${value} options=${options} onChange=${change} />`;
  return html`
    <fieldset class="form-grid">
      <legend>${words.access}</legend>
      <${Select} label=${words.template} hint=${words.templateHint} value=${template}
        options=${POLICY_TEMPLATES.map((value) => ({ value, label: words.templates[value] }))}
        onChange=${(value: PolicyTemplate) => onChange(chooseTemplate(form, value, catalog))} />
      ${
        template === "owner reads and writes" &&
        choice(words.owner, owner, ["", ...names], (value) => onChange({ owner: value }), words.ownerHint)
      }
      ${
        template === "members read and write" &&
        html`
          ${choice(words.organisationColumn, membership.column, ["", ...names], (column) => changeMembership({ column }))}
          <${Select} label=${words.memberTable} value=${members ? nameKey(members) : ""} options=${[{ value: "" }, ...tableOptions(catalog.tables)]}
            onChange=${(key: string) => changeMembership({ table: tableOfKey(catalog, key) ?? membership.table })} />
          ${choice(words.memberOrganisation, membership.organisation, memberColumns, (organisation) => changeMembership({ organisation }))}
          ${choice(words.memberUser, membership.user, memberColumns, (user) => changeMembership({ user }))}
        `
      }
    </fieldset>
  `;
}

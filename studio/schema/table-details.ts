import {
  type DatabaseDescription,
  type DescribedColumn,
  type DescribedDependent,
  type DescribedTable,
  hasPrivilege,
  nameKey,
  readableComment,
  referencesTo,
  shortName,
} from "../api/catalog.ts";
import { CopyButton } from "../components/code-block.ts";
import { CodeEditor } from "../components/code-editor.ts";
import { Icon } from "../components/icon.ts";
import { type Children, html } from "../html.ts";
import { pathTo } from "../router.ts";
import { formatBytes } from "../texts/format.ts";
import { texts } from "../texts.ts";
import { aboutCount, Code, DetailsHeader, DetailsSection, Facts, PartsTable, TableLink } from "./details-parts.ts";
import { ColumnMenu, ConstraintMenu, IndexMenu, PolicyMenu, TableMenu } from "./forms/schema-menus.ts";
import { pathToFunction } from "./objects.ts";
import { tableDefinition } from "./table-definition.ts";

type TableProps = { readonly catalog: DatabaseDescription; readonly table: DescribedTable };
type OnlyTable = Pick<TableProps, "table">;

/** All details of a table or view in the catalogue. */
export function TableDetails({ catalog, table }: TableProps) {
  const isView = table.kind === "view" || table.kind === "materialized view";
  return html`
    <article class="schema-article">
      <${DetailsHeader} name=${shortName(table)} kind=${table.kind} comment=${readableComment(table.comment)} actions=${actions(catalog, table)}>
        ${table.row_security !== "off" && html`<span class="badge good">${texts.schema.rowSecurity[table.row_security]}</span>`}
        ${table.row_security === "off" && table.exposed && !isView && html`<span class="badge warning">${texts.schema.rowSecurity.off}</span>`}
        ${table.published && html`<span class="badge">${texts.schema.published}</span>`}
        ${!table.exposed && html`<span class="badge">${texts.schema.notExposed}</span>`}
      <//>
      <${TableFacts} table=${table} />
      <${Columns} catalog=${catalog} table=${table} />
      ${!isView && html`<${Constraints} table=${table} />`}
      <${References} catalog=${catalog} table=${table} />
      <${Dependents} table=${table} />
      ${table.kind !== "view" && html`<${Indexes} table=${table} />`}
      ${!isView && html`<${Policies} catalog=${catalog} table=${table} />`}
      <${Triggers} catalog=${catalog} table=${table} />
      <${DetailsSection} title=${texts.schema.privileges}>
        <p class="quiet">${texts.schema.privilegesHint}</p>
        <${PrivilegeTable} catalog=${catalog} table=${table} />
      <//>
      <${DetailsSection} title=${texts.schema.definition} actions=${html`<${CopyButton} text=${tableDefinition(table)} />`}>
        <${CodeEditor} label=${texts.schema.definition} language="sql" value=${tableDefinition(table)} />
      <//>
    </article>
  `;
}

function actions(catalog: DatabaseDescription, table: DescribedTable): Children {
  const diagram = `${pathTo("schema", "diagram")}?around=${encodeURIComponent(nameKey(table))}`;
  return html`
    ${table.exposed && html`<a class="button small" href=${pathTo("tables", table.schema, table.name)}>${texts.schema.rows}</a>`}
    <a class="button small" href=${diagram}>${texts.schema.showInDiagram}</a>
    ${isChangeable(table) && html`<${TableMenu} catalog=${catalog} table=${table} />`}
  `;
}

/** True if the forms can change the table. */
function isChangeable({ kind, extension }: DescribedTable): boolean {
  return (kind === "table" || kind === "partitioned table") && extension === null;
}

function TableFacts({ table }: OnlyTable) {
  const facts: [string, Children][] = [
    [texts.schema.owner, table.owner],
    [texts.schema.estimatedRows, aboutCount(table.estimated_rows)],
    [texts.schema.size, table.bytes === null ? "" : formatBytes(table.bytes)],
    [texts.schema.changes, table.kind === "view" ? table.changes.join(", ") || texts.schema.readOnly : null],
    [texts.schema.securityInvoker, table.security_invoker ? texts.schema.yes : null],
    [texts.schema.unlogged, table.unlogged ? texts.schema.yes : null],
    [texts.schema.partitionedBy, table.partition_key && html`<${Code} text=${table.partition_key} />`],
    [texts.schema.partition, table.partition_bound && html`<${Code} text=${table.partition_bound} />`],
    [
      texts.schema.parents,
      table.parents.length > 0 && table.parents.map((name) => html`<${TableLink} name=${name} /> `),
    ],
    [texts.schema.server, table.server],
    [texts.schema.extension, table.extension],
    [texts.schema.replicaIdentity, table.replica_identity === "default" ? null : table.replica_identity],
  ];
  return html`<${Facts} facts=${facts.map(([name, value]) => [name, value === false ? null : value])} />`;
}

function Columns({ catalog, table }: TableProps) {
  const key = new Set(table.primary_key);
  const target = (column: string) =>
    table.foreign_keys
      .filter(({ columns }) => columns.includes(column))
      .map((each) => html`<${TableLink} name=${each.target} /> `);
  return html`
    <${DetailsSection} title=${texts.schema.columns} count=${table.columns.length}>
      <${PartsTable}
        label=${texts.schema.columns}
        head=${texts.schema.columnHead}
        rows=${table.columns.map((column) => [
          html`<span class="schema-name">${column.name}</span>${key.has(column.name) && html` <span class="badge">${texts.schema.key}</span>`}`,
          html`<${Code} text=${column.type} />${column.labels && html`<span class="quiet"> ${column.labels.join(", ")}</span>`}`,
          column.nullable ? texts.schema.nullable : texts.schema.notNull,
          valueSource(column),
          target(column.name),
          readableComment(column.comment) ?? "",
          isChangeable(table) && html`<${ColumnMenu} catalog=${catalog} table=${table} column=${column} />`,
        ])}
      />
    <//>
  `;
}

/** The source of the value if a request sends none. */
function valueSource({ identity, generated, default: initial, origin }: DescribedColumn): Children {
  if (identity) return texts.schema.identity(identity);
  if (generated) return html`${texts.schema.generated(generated.kind)} <${Code} text=${generated.expression} />`;
  if (origin) return html`<${TableLink} name=${origin} />.${origin.column}`;
  return initial === null ? "" : html`<${Code} text=${initial} />`;
}

function Constraints({ table }: OnlyTable) {
  return html`
    <${DetailsSection} title=${texts.schema.constraints} count=${table.constraints.length}>
      ${
        table.constraints.length > 0 &&
        html`<${PartsTable}
          label=${texts.schema.constraints}
          head=${texts.schema.constraintHead}
          rows=${table.constraints.map((each) => [
            html`<span class="schema-name">${each.name}</span>`,
            each.kind,
            html`<${Code} text=${each.definition} />${!each.valid && html` <span class="badge warning">${texts.schema.notValid}</span>`}`,
            isChangeable(table) && !each.inherited && html`<${ConstraintMenu} table=${table} constraint=${each} />`,
          ])}
        />`
      }
    <//>
  `;
}

function References({ catalog, table }: TableProps) {
  const references = referencesTo(catalog, table);
  if (references.length === 0) return null;
  return html`
    <${DetailsSection} title=${texts.schema.referencedBy} count=${references.length}>
      <${PartsTable}
        label=${texts.schema.referencedBy}
        head=${texts.schema.referenceHead}
        rows=${references.map(({ table: from, key }) => [
          html`<${TableLink} name=${from} />`,
          key.columns.join(", "),
          key.target_columns.join(", "),
          key.on_delete,
        ])}
      />
    <//>
  `;
}

/** The objects that depend on the columns. */
function Dependents({ table: { dependents } }: OnlyTable) {
  if (dependents.length === 0) return null;
  const nameOf = ({ kind, schema, name, of }: DescribedDependent): Children => {
    if (kind === "view") return html`<${TableLink} name=${{ schema, name }} />`;
    if (of === null) return shortName({ schema, name });
    return html`<span class="schema-name">${name}</span> ${texts.schema.of} <${TableLink} name=${{ schema, name: of }} />`;
  };
  return html`
    <${DetailsSection} title=${texts.schema.usedBy} count=${dependents.length}>
      <${PartsTable}
        label=${texts.schema.usedBy}
        head=${texts.schema.dependentHead}
        rows=${dependents.map((each) => [nameOf(each), each.kind, each.columns.join(", ")])}
      />
    <//>
  `;
}

function Indexes({ table }: OnlyTable) {
  const usage = (scans: number) =>
    scans > 0 ? texts.schema.scans(scans) : html`<span class="badge warning">${texts.schema.unused}</span>`;
  return html`
    <${DetailsSection} title=${texts.schema.indexes} count=${table.indexes.length}>
      ${
        table.indexes.length > 0 &&
        html`<${PartsTable}
          label=${texts.schema.indexes}
          head=${texts.schema.indexHead}
          rows=${table.indexes.map((index) => [
            html`<span class="schema-name">${index.name}</span>`,
            html`<${Code} text=${index.definition} />${!index.valid && html` <span class="badge danger">${texts.schema.invalid}</span>`}`,
            index.bytes === null ? "" : formatBytes(index.bytes),
            index.constraint === null ? usage(index.scans) : texts.schema.scans(index.scans),
            isChangeable(table) && html`<${IndexMenu} table=${table} index=${index} />`,
          ])}
        />`
      }
    <//>
  `;
}

function Policies({ catalog, table }: TableProps) {
  const { policies } = table;
  return html`
    <${DetailsSection} title=${texts.schema.policies} count=${policies.length}>
      ${table.row_security === "off" && policies.length > 0 && html`<p class="bad">${texts.schema.policiesUnused}</p>`}
      ${table.row_security !== "off" && policies.length === 0 && html`<p class="quiet">${texts.schema.noPolicies}</p>`}
      ${
        policies.length > 0 &&
        html`<${PartsTable}
          label=${texts.schema.policies}
          head=${texts.schema.policyHead}
          rows=${policies.map((policy) => [
            html`<span class="schema-name">${policy.name}</span>${policy.comment && html`<p class="quiet">${policy.comment}</p>`}`,
            html`${policy.command}${!policy.permissive && html` <span class="badge">${texts.schema.restrictive}</span>`}`,
            policy.roles.join(", "),
            policy.using !== null && html`<${Code} text=${policy.using} />`,
            policy.check !== null && html`<${Code} text=${policy.check} />`,
            isChangeable(table) && html`<${PolicyMenu} catalog=${catalog} table=${table} policy=${policy} />`,
          ])}
        />`
      }
    <//>
  `;
}

function Triggers({ catalog, table }: TableProps) {
  if (table.triggers.length === 0) return null;
  const linkOf = ({ schema, name }: { schema: string; name: string }) => {
    const described = catalog.functions.find((each) => each.schema === schema && each.name === name);
    const label = shortName({ schema, name });
    return described ? html`<a href=${pathToFunction(described)}>${label}</a>` : label;
  };
  return html`
    <${DetailsSection} title=${texts.schema.triggers} count=${table.triggers.length}>
      <${PartsTable}
        label=${texts.schema.triggers}
        head=${texts.schema.triggerHead}
        rows=${table.triggers.map((trigger) => [
          html`<span class="schema-name">${trigger.name}</span>`,
          html`<${Code} text=${trigger.definition} />`,
          linkOf(trigger.function),
          trigger.enabled === "origin" ? "" : html`<span class="badge warning">${trigger.enabled}</span>`,
        ])}
      />
    <//>
  `;
}

const COMMANDS = ["select", "insert", "update", "delete"] as const;

/** The privileges of each role that requests can run with; if they cover some columns only, with these columns. */
function PrivilegeTable({ catalog, table }: TableProps) {
  const roles = catalog.roles.filter(({ settable, login }) => settable && !login);
  return html`
    <${PartsTable}
      label=${texts.schema.privileges}
      head=${[texts.schema.role, ...COMMANDS]}
      rows=${roles.map(({ name }) => [
        html`<span class="schema-name">${name}</span>`,
        ...COMMANDS.map((command) => privilegeCell(catalog, name, command, table)),
      ])}
    />
  `;
}

function privilegeCell(catalog: DatabaseDescription, role: string, command: string, table: DescribedTable): Children {
  if (hasPrivilege(catalog, role, command, table)) {
    return html`<span class="good"><${Icon} name="check" /><span class="visually-hidden">${texts.schema.yes}</span></span>`;
  }
  const columns = table.columns
    .map(({ name }) => name)
    .filter((name) => hasPrivilege(catalog, role, command, table, name));
  if (columns.length === table.columns.length && columns.length > 0) return texts.schema.allColumns;
  return columns.length > 0
    ? columns.join(", ")
    : html`<span class="quiet" aria-hidden="true">–</span><span class="visually-hidden">${texts.schema.no}</span>`;
}

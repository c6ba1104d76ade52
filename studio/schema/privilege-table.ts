import { type DatabaseDescription, type DescribedTable, hasPrivilege } from "../api/catalog.ts";
import { Icon } from "../components/icon.ts";
import { type Children, html } from "../html.ts";
import { texts } from "../texts.ts";
import { PartsTable } from "./details-parts.ts";

const COMMANDS = ["select", "insert", "update", "delete"] as const;

type PrivilegeTableProps = { readonly catalog: DatabaseDescription; readonly table: DescribedTable };

/** What each role that requests can run with may do; for some columns only, which ones. */
export function PrivilegeTable({ catalog, table }: PrivilegeTableProps) {
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

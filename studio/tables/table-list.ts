import { useState } from "preact/hooks";
import { type DatabaseDescription, type DescribedName, type DescribedTable, isSameName } from "../api/catalog.ts";
import { TextField } from "../components/field.ts";
import { Icon } from "../components/icon.ts";
import { html } from "../html.ts";
import { pathTo } from "../router.ts";
import { texts } from "../texts.ts";
import { findObstacle } from "./rows/table-access.ts";

type TableListProps = {
  readonly catalog: DatabaseDescription;
  readonly role: string;
  readonly chosen: DescribedName | null;
};

/** All tables by schema; unreadable ones are greyed, with the reason. */
export function TableList({ catalog, role, chosen }: TableListProps) {
  const [search, setSearch] = useState("");
  const wanted = search.trim().toLowerCase();
  const schemas = groupTables(catalog, wanted);
  return html`
    <nav class="table-list" aria-label=${texts.tables.list}>
      <${TextField} label=${texts.tables.search} hideLabel type="search" placeholder=${texts.tables.search} value=${search} onInput=${setSearch} />
      ${schemas.map(
        ({ schema, tables, isFolded }) => html`
          <details key=${schema} open=${!isFolded || wanted !== "" || chosen?.schema === schema}>
            <summary>${schema}<span class="quiet">${tables.length}</span></summary>
            <ul>
              ${tables.map((table) => html`<${TableItem} key=${table.name} catalog=${catalog} role=${role} table=${table} isChosen=${chosen !== null && isSameName(chosen, table)} />`)}
            </ul>
          </details>
        `,
      )}
      ${schemas.length === 0 && html`<p class="quiet">${texts.tables.noneFound}</p>`}
    </nav>
  `;
}

type TableItemProps = {
  readonly catalog: DatabaseDescription;
  readonly role: string;
  readonly table: DescribedTable;
  readonly isChosen: boolean;
};

function TableItem({ catalog, role, table, isChosen }: TableItemProps) {
  const obstacle = findObstacle(catalog, role, table);
  const reason = obstacle && texts.tables.obstacles[obstacle](role);
  const detail = reason ?? table.comment?.split("\n").find((line) => line !== "" && !line.startsWith("@"));
  return html`
    <li>
      <a
        class=${obstacle ? "table-item unreadable" : "table-item"}
        href=${pathTo("tables", table.schema, table.name)}
        aria-current=${isChosen ? "page" : undefined}
        title=${detail ?? table.name}
      >
        <${Icon} name=${table.kind.endsWith("view") ? "eye" : "table"} />
        <span class="table-item-name">${table.name}</span>
        ${table.estimated_rows !== null && html`<span class="table-item-count">${texts.tables.approximately(table.estimated_rows)}</span>`}
        ${detail && html`<span class="table-item-detail">${detail}</span>`}
      </a>
    </li>
  `;
}

type ListedSchema = {
  readonly schema: string;
  readonly tables: readonly DescribedTable[];
  /** True if the tables are hidden at first, as for schemas that are not served. */
  readonly isFolded: boolean;
};

function groupTables({ schemas, tables }: DatabaseDescription, wanted: string): ListedSchema[] {
  return schemas
    .map(({ name, exposed }) => ({
      schema: name,
      isFolded: !exposed,
      tables: tables.filter((table) => table.schema === name && isListed(table, wanted)),
    }))
    .filter((group) => group.tables.length > 0)
    .sort((one, other) => Number(one.isFolded) - Number(other.isFolded));
}

function isListed({ name, comment, parents, partition_bound: bound }: DescribedTable, wanted: string): boolean {
  const isPartition = parents.length > 0 && bound !== null;
  return !isPartition && (name.toLowerCase().includes(wanted) || (comment?.toLowerCase().includes(wanted) ?? false));
}

import { whyLink } from "../access/access-api.ts";
import { type DatabaseDescription, type DescribedColumn, type DescribedTable, shortName } from "../api/catalog.ts";
import { formatQuery, type TableRow, tablePath } from "../api/rest-query.ts";
import { IconButton } from "../components/button.ts";
import { CopyButton } from "../components/code-block.ts";
import { useGridRows } from "../components/grid-rows.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import { keyFilters } from "./edit/row-requests.ts";
import { addressOf, foreignKeyOf, referencedRow, referencingRows } from "./references.ts";
import type { RowWindows } from "./rows/row-windows.ts";

function rowPath({ name, primary_key: key }: DescribedTable, row: TableRow): string {
  return `${tablePath(name)}?${formatQuery(keyFilters(key, [row]))}`;
}

type RowDetailsProps = {
  readonly catalog: DatabaseDescription;
  readonly table: DescribedTable;
  readonly columns: readonly DescribedColumn[];
  readonly windows: RowWindows;
  readonly index: number | null;
  readonly onClose: () => void;
};

/** A row with all values in full, the rows that it refers to, and those that refer to it. */
export function RowDetails({ catalog, table, columns, windows, index, onClose }: RowDetailsProps) {
  useGridRows(windows);
  const row = index === null ? undefined : windows.rowAt(index);
  const references = row ? referencingRows(catalog, table, row) : [];
  return html`
    <aside class="row-details" aria-label=${texts.tables.detailsTitle}>
      <header>
        <h2>${index === null || index < 0 ? texts.tables.detailsTitle : texts.tables.rowNumber(index + 1)}</h2>
        <${IconButton} icon="close" size="small" label=${texts.components.close} onClick=${onClose} />
      </header>
      ${!row && html`<p class="quiet">${texts.tables.chooseRow}</p>`}
      ${
        row &&
        html`<dl>${columns.map((column) => {
          const value = row[column.name] ?? null;
          const key = value === null ? undefined : foreignKeyOf(table, column.name);
          const reference = key && referencedRow(catalog, key, row);
          return html`
            <div key=${column.name} class="row-detail">
              <dt>${column.name} <span class="quiet mono">${column.type}</span></dt>
              <dd class=${value === null || value === "" ? "cell-null" : "mono"}>${value === null ? texts.tables.null : value || texts.tables.emptyText}</dd>
              ${reference && html`<a href=${addressOf(reference)}>${shortName(reference.table)}</a>`}
              ${value !== null && value.length > 80 && html`<${CopyButton} text=${value} />`}
            </div>
          `;
        })}</dl>`
      }
      ${row && table.primary_key.length > 0 && html`<p><a href=${whyLink(rowPath(table, row), table.schema)}>${texts.tables.whoSees}</a></p>`}
      ${
        references.length > 0 &&
        html`
          <h3>${texts.tables.referencedBy}</h3>
          <ul class="row-references">
            ${references.map((reference) => html`<li key=${reference.table.schema + reference.name}><a href=${addressOf(reference)}>${shortName(reference.table)}</a> <span class="quiet mono">${reference.filters.map(({ column }) => column).join(", ")}</span></li>`)}
          </ul>
        `
      }
    </aside>
  `;
}

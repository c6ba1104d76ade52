import { whyLink } from "../access/access-api.ts";
import type { DescribedTable } from "../api/catalog.ts";
import { ServiceError } from "../api/http.ts";
import { CodeBlock } from "../components/code-block.ts";
import { useGridRows } from "../components/grid-rows.ts";
import { Notice } from "../components/notice.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import type { RowWindows } from "./row-windows.ts";
import { grantStatements } from "./table-access.ts";

export type TableErrorsProps = {
  readonly windows: RowWindows;
  readonly role: string;
  readonly table: DescribedTable;
};

/** Why rows could not be read, and what to do about it. */
export function TableErrors({ windows, role, table }: TableErrorsProps) {
  useGridRows(windows);
  const { error } = windows;
  if (!(error instanceof Error)) return null;
  return html`
    <${Notice} kind="error" error=${error} onRetry=${() => windows.retry()}>
      ${error instanceof ServiceError && error.code === "42501" && html`<${MissingGrant} role=${role} table=${table} />`}
    <//>
  `;
}

export function MissingGrant({ role, table }: Omit<TableErrorsProps, "windows">) {
  return html`
    <p>${texts.tables.missingGrant(role)}</p>
    <${CodeBlock} wrap text=${grantStatements(role, table)} label=${texts.tables.grantLabel} />
    <p><a href=${whyLink(`/rest/v1/${encodeURIComponent(table.name)}`, table.schema)}>${texts.tables.why}</a></p>
  `;
}

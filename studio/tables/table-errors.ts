import { whyLink } from "../access/access-api.ts";
import type { DescribedTable } from "../api/catalog.ts";
import { ServiceError } from "../api/http.ts";
import { tablePath } from "../api/rest-query.ts";
import { CodeBlock } from "../components/code-block.ts";
import { useGridRows } from "../components/grid-rows.ts";
import { Notice } from "../components/notice.ts";
import { location } from "../frame/router.ts";
import { html } from "../html.ts";
import { useStore } from "../store.ts";
import { texts } from "../texts.ts";
import type { RowWindows } from "./row-windows.ts";
import { grantStatements } from "./table-access.ts";

export type TableErrorsProps = {
  readonly windows: RowWindows;
  readonly role: string;
  readonly table: DescribedTable;
};

/** Why rows could not be read or are not seen, and what to do about it. */
export function TableErrors({ windows, role, table }: TableErrorsProps) {
  useGridRows(windows);
  const { error, isExact, rowCount } = windows;
  const isHidden = !error && isExact && rowCount === 0 && table.row_security !== "off";
  if (isHidden) return html`<${Notice}><p>${texts.tables.maybeHidden(role)} <${WhyLink} table=${table} /></p><//>`;
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
    <p><${WhyLink} table=${table} /></p>
  `;
}

/** Leads to the explanation of the request for these rows. */
function WhyLink({ table }: Pick<TableErrorsProps, "table">) {
  const { query } = useStore(location);
  const path = tablePath(table.name) + (query && `?${query}`);
  return html`<a href=${whyLink(path, table.schema)}>${texts.tables.why}</a>`;
}

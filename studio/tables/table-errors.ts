import { useState } from "preact/hooks";
import { whyLink } from "../access/access-api.ts";
import type { DatabaseDescription, DescribedTable } from "../api/catalog.ts";
import { ServiceError } from "../api/http.ts";
import { tablePath } from "../api/rest-query.ts";
import { Button } from "../components/button.ts";
import { CodeBlock } from "../components/code-block.ts";
import { useGridRows } from "../components/grid-rows.ts";
import { lazy } from "../components/lazy.ts";
import { Notice } from "../components/notice.ts";
import { location } from "../frame/router.ts";
import { html } from "../html.ts";
import { useStore } from "../store.ts";
import { texts } from "../texts.ts";
import type { RowWindows } from "./row-windows.ts";
import { grantStatements } from "./table-access.ts";

const ApplySqlDialog = lazy(async () => (await import("../schema/forms/apply-sql-dialog.ts")).ApplySqlDialog);

export type TableErrorsProps = {
  readonly catalog: DatabaseDescription;
  readonly windows: RowWindows;
  readonly role: string;
  readonly table: DescribedTable;
};

/** Why rows could not be read or are not seen, and what to do about it. */
export function TableErrors({ catalog, windows, role, table }: TableErrorsProps) {
  useGridRows(windows);
  const { error, isExact, rowCount } = windows;
  const isHidden = !error && isExact && rowCount === 0 && table.row_security !== "off";
  if (isHidden) return html`<${Notice}><p>${texts.tables.maybeHidden(role)} <${WhyLink} table=${table} /></p><//>`;
  if (!(error instanceof Error)) return null;
  return html`
    <${Notice} kind="error" error=${error} onRetry=${() => windows.retry()}>
      ${error instanceof ServiceError && error.code === "42501" && html`<${MissingGrant} catalog=${catalog} role=${role} table=${table} onGranted=${() => windows.retry()} />`}
    <//>
  `;
}

export type MissingGrantProps = Omit<TableErrorsProps, "windows"> & { readonly onGranted: () => void };

/** The SQL that lets the role read the table, which can be applied. */
export function MissingGrant({ catalog, role, table, onGranted }: MissingGrantProps) {
  const [isApplying, setApplying] = useState(false);
  const sql = grantStatements(catalog, role, table);
  const title = texts.tables.grantTitle(table.name);
  return html`
    <p>${texts.tables.missingGrant(role)}</p>
    <${CodeBlock} wrap text=${sql} label=${texts.tables.grantLabel} />
    <div class="row">
      <${Button} onClick=${() => setApplying(true)}>${texts.tables.applyGrant}<//>
      <${WhyLink} table=${table} />
    </div>
    ${isApplying && html`<${ApplySqlDialog} title=${title} sql=${sql} name=${title} onClose=${() => setApplying(false)} onApplied=${onGranted} />`}
  `;
}

/** Leads to the explanation of the request for these rows. */
function WhyLink({ table }: Pick<TableErrorsProps, "table">) {
  const { query } = useStore(location);
  const path = tablePath(table.name) + (query && `?${query}`);
  return html`<a href=${whyLink(path, table.schema)}>${texts.tables.why}</a>`;
}

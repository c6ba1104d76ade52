import { useState } from "preact/hooks";
import { explainRequest, whyLink } from "../access/access-api.ts";
import type { DatabaseDescription, DescribedTable } from "../api/catalog.ts";
import { ServiceError } from "../api/http.ts";
import { tablePath } from "../api/rest-query.ts";
import { sessionState } from "../api/session.ts";
import { useLoaded } from "../api/use-loaded.ts";
import { Button } from "../components/button.ts";
import { CodeBlock } from "../components/code-block.ts";
import { useGridRows } from "../components/grid-rows.ts";
import { lazy } from "../components/lazy.ts";
import { Notice } from "../components/notice.ts";
import { html } from "../html.ts";
import { location } from "../router.ts";
import { useStore } from "../store.ts";
import { texts } from "../texts.ts";
import type { RowWindows } from "./rows/row-windows.ts";
import { grantStatements } from "./rows/table-access.ts";

const ApplySqlDialog = lazy(async () => (await import("../schema/forms/apply-sql-dialog.ts")).ApplySqlDialog);

type TableErrorsProps = {
  readonly catalog: DatabaseDescription;
  readonly windows: RowWindows;
  readonly role: string;
  readonly table: DescribedTable;
  /** True if the page mentions hidden rows when no row is visible. */
  readonly explainsHidden: boolean;
};

/** Explains why rows could not be read or are not visible, and what to do. */
export function TableErrors({ catalog, windows, role, table, explainsHidden }: TableErrorsProps) {
  useGridRows(windows);
  const { error, isExact, rowCount } = windows;
  const isHidden = explainsHidden && !error && isExact && rowCount === 0 && table.row_security !== "off";
  if (isHidden) return html`<${Notice}><p>${texts.tables.maybeHidden(role)} <${WhyLink} table=${table} /></p><//>`;
  if (!(error instanceof Error)) return null;
  const isForbidden = error instanceof ServiceError && error.code === "42501";
  return html`
    <${Notice} kind="error" error=${error} hidesHint=${isForbidden} onRetry=${() => windows.retry()}>
      ${isForbidden && html`<${RefusedRead} catalog=${catalog} message=${error.message} role=${role} table=${table} onGranted=${() => windows.retry()} />`}
    <//>
  `;
}

type RefusedReadProps = Omit<MissingGrantProps, "sql"> & {
  readonly catalog: DatabaseDescription;
  readonly message: string;
};

/** Explains a refused read. The privileges may be missing on another table, which a view or a policy reads. */
function RefusedRead({ catalog, message, ...props }: RefusedReadProps) {
  const { role, table } = props;
  const isOfTable = message.endsWith(` ${table.name}`);
  return isOfTable
    ? html`<${MissingGrant} ...${props} sql=${grantStatements(catalog, role, table, { privilege: "select" })} />`
    : html`<${RefusedElsewhere} ...${props} />`;
}

function RefusedElsewhere(props: Omit<MissingGrantProps, "sql">) {
  const { role, table } = props;
  const path = useShownPath(table);
  const { value } = useLoaded(
    (signal) => explainRequest({ path, schema: table.schema, as: { role, ...claimsOfViewed() } }, signal),
    [path, role],
  );
  const sql = value?.missing_grants.join("\n") ?? "";
  return sql === "" ? html`<${WhyLink} table=${table} />` : html`<${MissingGrant} ...${props} sql=${sql} />`;
}

function claimsOfViewed(): { readonly claims?: object } {
  const state = sessionState.get();
  return state.status === "signed-in" && state.viewAs ? { claims: state.viewAs.claims } : {};
}

type MissingGrantProps = {
  readonly role: string;
  readonly table: DescribedTable;
  readonly sql: string;
  readonly onGranted: () => void;
};

/** The SQL that grants the missing privilege to the role; it can be applied. */
export function MissingGrant({ role, table, sql, onGranted }: MissingGrantProps) {
  const [isApplying, setApplying] = useState(false);
  return html`
    <p>${texts.tables.missingGrant(role)}</p>
    <${CodeBlock} wrap text=${sql} label=${texts.tables.grantLabel} />
    <div class="row">
      <${Button} onClick=${() => setApplying(true)}>${texts.tables.applyGrant}<//>
      <${WhyLink} table=${table} />
    </div>
    ${isApplying && html`<${GrantDialog} table=${table.name} sql=${sql} onClose=${() => setApplying(false)} onGranted=${onGranted} />`}
  `;
}

type GrantDialogProps = Pick<MissingGrantProps, "sql" | "onGranted"> & {
  readonly table: string;
  readonly onClose: () => void;
};

export function GrantDialog({ table, sql, onClose, onGranted }: GrantDialogProps) {
  const title = texts.tables.grantTitle(table);
  return html`<${ApplySqlDialog} title=${title} sql=${sql} name=${title} onClose=${onClose} onApplied=${onGranted} />`;
}

/** A link to the explanation of the request for these rows. */
export function WhyLink({ table }: Pick<TableErrorsProps, "table">) {
  return html`<a href=${whyLink(useShownPath(table), table.schema)}>${texts.tables.why}</a>`;
}

/** Returns the path of the request for the rows that the page shows. */
function useShownPath({ name }: DescribedTable): string {
  const { query } = useStore(location);
  return tablePath(name) + (query && `?${query}`);
}

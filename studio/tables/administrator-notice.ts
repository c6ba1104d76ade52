import { useState } from "preact/hooks";
import { explainRequest } from "../access/access-api.ts";
import type { DescribedTable } from "../api/catalog.ts";
import { tablePath } from "../api/rest-query.ts";
import { Button } from "../components/button.ts";
import { Notice } from "../components/notice.ts";
import { useLoaded } from "../components/use-loaded.ts";
import { html } from "../html.ts";
import { ADMINISTRATOR, allowAdministrators } from "../schema/forms/policy-sql.ts";
import { texts } from "../texts.ts";
import { GrantDialog, WhyLink } from "./table-errors.ts";

/** Whether the rows that an administrator sees and changes here depend on policies that were written for others. */
export function isHiddenFromAdministrator(table: DescribedTable, role: string): boolean {
  return role === ADMINISTRATOR && table.lacks_administrator_policy;
}

type AdministratorNoticeProps = { readonly table: DescribedTable; readonly onGranted: () => void };

/** How many rows are hidden from administrators, and the policy that shows them. */
export function AdministratorNotice({ table, onGranted }: AdministratorNoticeProps) {
  const [isApplying, setApplying] = useState(false);
  const { schema, name } = table;
  const { value } = useLoaded(
    (signal) => explainRequest({ path: tablePath(name), schema, as: { role: ADMINISTRATOR } }, signal),
    [schema, name],
  );
  if (!value) return null;
  const { visible = 0, total = 0, is_partial: isPartial = false } = value;
  return html`
    <${Notice}>
      <p>${texts.tables.noAdministratorPolicy({ visible, total, isPartial })} <${WhyLink} table=${table} /></p>
      <div class="row"><${Button} size="small" onClick=${() => setApplying(true)}>${texts.tables.applyGrant}<//></div>
    <//>
    ${isApplying && html`<${GrantDialog} table=${name} sql=${allowAdministrators(table)} onClose=${() => setApplying(false)} onGranted=${onGranted} />`}
  `;
}

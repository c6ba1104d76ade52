import { useState } from "preact/hooks";
import { explainRequest } from "../access/access-api.ts";
import type { DescribedPolicy, DescribedTable } from "../api/catalog.ts";
import { tablePath } from "../api/rest-query.ts";
import { Button } from "../components/button.ts";
import { Notice } from "../components/notice.ts";
import { useLoaded } from "../components/use-loaded.ts";
import { html } from "../html.ts";
import { ADMINISTRATOR, allowAdministrators } from "../schema/forms/policy-sql.ts";
import { texts } from "../texts.ts";
import { GrantDialog, WhyLink } from "./table-errors.ts";

/** Policies that allow everything, or that are made for administrators. */
function isForAdministrators({ permissive, roles, using, check }: DescribedPolicy): boolean {
  const allowsAll = (using ?? check) === "true" && (check ?? "true") === "true";
  return permissive && (roles.includes(ADMINISTRATOR) || (roles.includes("public") && allowsAll));
}

/** Whether the rows that administrators see and change depend on policies that were written for others. */
export function lacksAdministratorPolicy(
  { kind, row_security: security, policies }: DescribedTable,
  role: string,
): boolean {
  const isTable = kind === "table" || kind === "partitioned table";
  if (role !== ADMINISTRATOR || !isTable || security === "off") return false;
  const own = policies.filter(isForAdministrators).map(({ command }) => command);
  return (
    !own.includes("all") &&
    !["select", "insert", "update", "delete"].every((each) => own.some((command) => command === each))
  );
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

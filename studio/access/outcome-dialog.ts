import { useState } from "preact/hooks";
import type { PolicyInWords, TriedCaller, TriedOutcome, TriedTable } from "#operations/admin-types";
import { Button } from "../components/button.ts";
import { CodeBlock } from "../components/code-block.ts";
import { Dialog } from "../components/dialog.ts";
import { html } from "../html.ts";
import { ApplySqlDialog } from "../schema/forms/apply-sql-dialog.ts";
import { texts } from "../texts.ts";
import { whyLink } from "./access-api.ts";

export type ChosenCell = {
  readonly table: TriedTable;
  readonly command: string;
  readonly caller: TriedCaller;
  readonly outcome: TriedOutcome;
};

const words = texts.access.outcome;

/** Explains why a caller may or may not use a command: policies in words and SQL, and missing grants. */
export function OutcomeDialog({ cell, onClose }: { readonly cell: ChosenCell; readonly onClose: () => void }) {
  const { table, command, caller, outcome } = cell;
  const policies = table.policies.filter(({ name }) => outcome.policies?.includes(name));
  const title = words.title(caller.name ?? caller.role, command, `${table.schema}.${table.name}`);
  return html`
    <${Dialog} title=${title} size="wide" onClose=${onClose}>
      <p>${summaryOf(cell)}</p>
      <${MissingGrants} grants=${outcome.missing_grants} />
      <${PolicyList} policies=${policies} />
      ${
        command === "select" &&
        html`<p><a href=${whyLink(`/rest/v1/${encodeURIComponent(table.name)}`, table.schema)} onClick=${onClose}>${words.explainRows}</a></p>`
      }
    <//>
  `;
}

function summaryOf({ table, outcome }: ChosenCell): string {
  if (outcome.missing_grants.length > 0) return words.lacksGrant;
  if (table.row_security === "off") return words.noRowSecurity;
  if (outcome.policies === null) return words.bypasses;
  if (outcome.policies.length === 0) return words.noPolicy;
  return outcome.kind === "failed" ? words.failed(outcome.code ?? "") : words.byPolicies;
}

/** The SQL that grants the missing privileges of a role; it can be applied. */
export function MissingGrants({ grants }: { readonly grants: readonly string[] }) {
  const [isApplying, setApplying] = useState(false);
  if (grants.length === 0) return null;
  const sql = grants.join("\n");
  return html`
    <section class="stack" aria-label=${words.missingGrants}>
      <h3>${words.missingGrants}</h3>
      <${CodeBlock} text=${sql} label=${words.missingGrants} wrap />
      <div class="row"><${Button} onClick=${() => setApplying(true)}>${words.apply}<//></div>
      ${isApplying && html`<${ApplySqlDialog} title=${words.missingGrants} sql=${sql} name=${words.grantName} onClose=${() => setApplying(false)} />`}
    </section>
  `;
}

export function PolicyList({ policies }: { readonly policies: readonly PolicyInWords[] }) {
  return policies.map(
    (policy) => html`
      <section key=${policy.name} class="stack" aria-label=${policy.name}>
        <h3>${policy.name} ${!policy.permissive && html`<span class="badge warning">${words.restrictive}</span>`}</h3>
        <p>${policy.words}.</p>
        <${CodeBlock} text=${policySql(policy)} label=${words.sqlOf(policy.name)} wrap />
      </section>
    `,
  );
}

function policySql({ command, roles, using, check, permissive }: PolicyInWords): string {
  return [
    `${permissive ? "" : "as restrictive "}for ${command} to ${roles.join(", ")}`,
    ...(using === null ? [] : [`using (${using})`]),
    ...(check === null ? [] : [`with check (${check})`]),
  ].join("\n");
}

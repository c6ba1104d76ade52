import { useState } from "preact/hooks";
import type { Finding } from "#operations/admin-types";
import { useLoaded } from "../api/use-loaded.ts";
import { Button } from "../components/button.ts";
import { CodeBlock } from "../components/code-block.ts";
import { Checkbox } from "../components/field.ts";
import { Notice } from "../components/notice.ts";
import { Empty, Loading } from "../components/page.ts";
import { html } from "../html.ts";
import { ApplySqlDialog } from "../schema/forms/apply-sql-dialog.ts";
import { texts } from "../texts.ts";
import { readFindings } from "./access-api.ts";

const words = texts.access.doctor;
const BADGES: Readonly<Record<Finding["kind"], string>> = { danger: "danger", advice: "", slow: "warning" };

/** The findings of `npm run doctor`, with SQL that can be applied. */
export function Findings() {
  const [comparesMigrations, setComparing] = useState(false);
  const { value, error, isLoading, reload } = useLoaded(
    (signal) => readFindings(comparesMigrations, signal),
    [comparesMigrations],
  );
  const [applied, setApplied] = useState<Finding | null>(null);
  return html`
    <div class="row">
      <${Button} icon="refresh" busy=${isLoading} onClick=${reload}>${words.again}<//>
      <${Checkbox} label=${words.compare} checked=${comparesMigrations} onChange=${setComparing} />
    </div>
    ${error && html`<${Notice} kind="error" error=${error} onRetry=${reload} />`}
    ${!value && isLoading && html`<${Loading} />`}
    ${value?.length === 0 && html`<${Empty}>${words.none}<//>`}
    <ul class="access-findings">
      ${value?.map((finding) => html`<${FindingItem} key=${finding.problem} finding=${finding} onApply=${() => setApplied(finding)} />`)}
    </ul>
    ${
      applied &&
      html`<${ApplySqlDialog} title=${applied.problem} sql=${applied.sql} name=${words.name} onClose=${() => setApplied(null)} onApplied=${reload} />`
    }
  `;
}

function FindingItem({ finding, onApply }: { finding: Finding; onApply: () => void }) {
  const { kind, problem, fix, sql } = finding;
  return html`
    <li class="stack">
      <p><span class=${`badge ${BADGES[kind]}`}>${words.kinds[kind]}</span> ${problem}</p>
      <${CodeBlock} text=${sql ?? fix} label=${words.fix} wrap />
      ${sql && html`<div class="row"><${Button} onClick=${onApply}>${words.apply}<//></div>`}
    </li>
  `;
}

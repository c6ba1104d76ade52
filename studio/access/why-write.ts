import type {
  PolicyInWords,
  PolicyPass,
  RefusalExplanation,
  WriteCommand,
  WritesExplanation,
} from "#operations/admin-types";
import { useLoaded } from "../api/use-loaded.ts";
import { CodeBlock } from "../components/code-block.ts";
import { Notice } from "../components/notice.ts";
import { Loading } from "../components/page.ts";
import { PlainTable } from "../components/plain-table.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import { explainWrite, type WhyWriteRequest } from "./access-api.ts";
import { MissingGrants, PolicyList } from "./outcome-dialog.ts";

const words = texts.access.why;

/** Returns null for a read. */
export function parseWriteCommand(text: string | null): WriteCommand | null {
  return text === "insert" || text === "update" || text === "delete" ? text : null;
}

/** Parses the written columns in the address of the page; null if there are none, or if somebody has changed them. */
export function parseWrittenValues(text: string | null): object | null {
  try {
    const value: unknown = JSON.parse(text ?? "null");
    return typeof value === "object" && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

/** Explains which privileges and policies let a caller write rows, or refuse it. */
export function ExplainedWrite(request: WhyWriteRequest) {
  const { value, error, isLoading, reload } = useLoaded(
    (signal) => explainWrite(request, signal),
    [JSON.stringify(request)],
  );
  if (error) return html`<${Notice} kind="error" error=${error} onRetry=${reload} />`;
  if (!value) return isLoading && html`<${Loading} />`;
  return html`<div class="stack" aria-busy=${isLoading}><${WriteDetails} explanation=${value} request=${request} /></div>`;
}

type WriteDetailsProps = {
  readonly explanation: WritesExplanation | RefusalExplanation;
  readonly request: WhyWriteRequest;
};

function WriteDetails({ explanation, request: { command, values } }: WriteDetailsProps) {
  const { role, missing_grants: grants } = explanation;
  if (explanation.refusal) {
    const { refusal } = explanation;
    return html`<${Notice} kind="error" title=${words.refused(role, refusal.status, refusal.code)}><p>${refusal.message}</p><//>`;
  }
  const { table, policies, rows, missing_to_return: missingToReturn } = explanation;
  const refused = rows.filter((row) => !row.is_allowed).length;
  const isAllowed = grants.length === 0 && refused === 0;
  const isReturned = missingToReturn.length === 0 && rows.every(({ returned }) => returned?.passes ?? true);
  const title =
    grants.length > 0
      ? words.lacksPrivilege(role, command)
      : refused > 0
        ? words.writeRefused(role, command, refused, rows.length)
        : words.writeAllowed(role, command);
  return html`
    <${Notice} kind=${isAllowed ? "success" : "error"} title=${title}>
      ${isAllowed && html`<p>${words.otherRefusals}</p>`}
      ${explanation.is_partial && html`<p>${words.partial(rows.length)}</p>`}
      ${table.row_security === "off" && html`<p>${words.noRowSecurity}</p>`}
      ${table.bypasses_policies && table.row_security !== "off" && html`<p>${words.bypasses}</p>`}
    <//>
    <${MissingGrants} grants=${grants} />
    ${isAllowed && !isReturned && html`<${Notice} kind="warning"><p>${words.notReturned(role)}</p><//><${MissingGrants} grants=${missingToReturn} />`}
    ${values && html`<${CodeBlock} label=${words.written} text=${JSON.stringify(values, null, 2)} wrap />`}
    <${CheckedRows} explanation=${explanation} />
    <h2>${words.policies}</h2>
    ${policies.length === 0 ? html`<p class="quiet">${words.noPolicies}</p>` : html`<${PolicyList} policies=${policies} />`}
  `;
}

/** The checks that decide about each row, with their policies. */
function CheckedRows({ explanation: { rows, policies } }: { readonly explanation: WritesExplanation }) {
  const checked = rows.flatMap(({ key, checks, returned }) => {
    const name = Object.entries(key).map(([column, value]) => `${column} = ${value}`);
    return [...checks, ...(returned ? [returned] : [])].map((check) => ({
      key: JSON.stringify([key, check.command, check.on]),
      cells: [
        name.join(", ") || words.newRow,
        check === returned ? words.returned : words.check(check.command, check.on),
        html`<span class=${check.passes ? "badge good" : "badge danger"}>${check.passes ? words.passes : words.refuses}</span>`,
        check.policies.length === 0
          ? words.noPolicyAllows
          : html`<ul class="access-results">${check.policies.map((each) => html`<${PolicyResult} key=${each.name} ...${each} policies=${policies} />`)}</ul>`,
      ],
    }));
  });
  if (checked.length === 0) return null;
  return html`
    <h2>${words.checks}</h2>
    <${PlainTable} label=${words.checks} heads=${[words.row, words.checked, words.result, words.results]} rows=${checked} />
  `;
}

type PolicyResultProps = PolicyPass & { readonly policies: readonly PolicyInWords[] };

export function PolicyResult({ name, passes, policies }: PolicyResultProps) {
  const policy = policies.find((each) => each.name === name);
  return html`
    <li>
      <span class=${passes ? "badge good" : "badge danger"}>${passes === null ? words.unknown : passes ? words.passes : words.fails}</span>
      ${" "}${name}: ${policy?.words ?? ""}
    </li>
  `;
}

import { useEffect, useState } from "preact/hooks";
import type { RefusalExplanation, RowsExplanation } from "#operations/admin-types";
import { shortName } from "../api/catalog.ts";
import { tablePath } from "../api/rest-query.ts";
import { useCatalog } from "../api/use-catalog.ts";
import { useLoaded } from "../api/use-loaded.ts";
import { Button } from "../components/button.ts";
import { CodeBlock } from "../components/code-block.ts";
import { TextField } from "../components/field.ts";
import { Notice } from "../components/notice.ts";
import { Loading } from "../components/page.ts";
import { PlainTable } from "../components/plain-table.ts";
import { Select } from "../components/select.ts";
import { html } from "../html.ts";
import { useSearchParameter } from "../router.ts";
import { texts } from "../texts.ts";
import { explainRequest, type TriedAs } from "./access-api.ts";
import { CallerChoice, useCaller } from "./caller-choice.ts";
import { MissingGrants, PolicyList } from "./outcome-dialog.ts";
import { ExplainedWrite, PolicyResult, parseWriteCommand, parseWrittenValues } from "./why-write.ts";

const words = texts.access.why;

/** Explains which rows of a request a caller does not see, and which policies hide them. */
export function Why() {
  const [path, setPath] = useSearchParameter("path");
  const [schema] = useSearchParameter("schema");
  const [user] = useSearchParameter("user");
  const [commandText, setCommand] = useSearchParameter("command");
  const [valuesText, setValues] = useSearchParameter("values");
  const command = parseWriteCommand(commandText);
  const as = useCaller();
  const [text, setText] = useState(path ?? "");
  useEffect(() => setText(path ?? ""), [path]);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    setPath(text.trim() === "" ? null : text.trim());
  };
  const chooseCommand = (chosen: string) => {
    setValues(null, { replace: true });
    setCommand(parseWriteCommand(chosen));
  };
  const request = path !== null && as && { path, schema, as };
  return html`
    <p>${words.intro}</p>
    <form class="access-request" onSubmit=${submit}>
      <${TextField} label=${words.request} placeholder="/rest/v1/…" value=${text} onInput=${setText} />
      <${Select} label=${words.command} value=${command ?? "select"} options=${words.commands} onChange=${chooseCommand} />
      <${CallerChoice} />
      <${Button} type="submit" kind="primary">${words.explain}<//>
    </form>
    ${user !== null && path === null && html`<${TableChoice} onChoose=${setPath} />`}
    ${request && command === null && html`<${ExplainedRequest} ...${request} />`}
    ${request && command !== null && html`<${ExplainedWrite} ...${request} command=${command} values=${parseWrittenValues(valuesText)} />`}
  `;
}

/** The tables that a user may be asked about. */
function TableChoice({ onChoose }: { readonly onChoose: (path: string) => void }) {
  const { value: catalog } = useCatalog();
  const tables = catalog?.tables.filter(({ exposed }) => exposed) ?? [];
  return html`
    <h2>${words.chooseTable}</h2>
    <ul class="access-results row">
      ${tables.map((table) => html`<li key=${table.schema + table.name}><${Button} size="small" onClick=${() => onChoose(tablePath(table.name))}>${shortName(table)}<//></li>`)}
    </ul>
  `;
}

type ExplainedRequestProps = { readonly path: string; readonly schema: string | null; readonly as: TriedAs };

function ExplainedRequest({ path, schema, as }: ExplainedRequestProps) {
  const { value, error, isLoading, reload } = useLoaded(
    (signal) => explainRequest({ path, schema, as }, signal),
    [path, schema, JSON.stringify(as)],
  );
  if (error) return html`<${Notice} kind="error" error=${error} onRetry=${reload} />`;
  if (!value) return isLoading && html`<${Loading} />`;
  return html`<div class="stack" aria-busy=${isLoading}><${ExplanationDetails} explanation=${value} /></div>`;
}

function ExplanationDetails({ explanation }: { explanation: RowsExplanation | RefusalExplanation }) {
  const { role, missing_grants: grants } = explanation;
  if (explanation.refusal) {
    const { refusal } = explanation;
    return html`
      <${Notice} kind="error" title=${words.refused(role, refusal.status, refusal.code)}>
        <p>${refusal.message}</p>
        ${refusal.cause && html`<p>${refusal.cause}</p>`}
      <//>
      <${MissingGrants} grants=${grants} />
    `;
  }
  const { table, visible, total, policies, plan } = explanation;
  return html`
    <${Notice} kind=${visible === total ? "success" : "warning"} title=${words.sees(role, visible, total)}>
      ${explanation.is_partial && html`<p>${words.partial(total)}</p>`}
      ${table.row_security === "off" && html`<p>${words.noRowSecurity}</p>`}
      ${table.bypasses_policies && table.row_security !== "off" && html`<p>${words.bypasses}</p>`}
      ${explanation.unreadable_columns.length > 0 && html`<p>${words.unreadable(explanation.unreadable_columns)}</p>`}
    <//>
    <${HiddenRows} explanation=${explanation} />
    <h2>${words.policies}</h2>
    ${policies.length === 0 ? html`<p class="quiet">${words.noPolicies}</p>` : html`<${PolicyList} policies=${policies} />`}
    <h2>${words.plan}</h2>
    <${CodeBlock} text=${plan} label=${words.plan} />
  `;
}

function HiddenRows({ explanation: { hidden, policies } }: { explanation: RowsExplanation }) {
  if (hidden.length === 0) return null;
  const rows = hidden.map(({ key, policies: results }) => ({
    key: JSON.stringify(key),
    cells: [
      Object.entries(key)
        .map(([column, value]) => `${column} = ${value}`)
        .join(", "),
      results.length === 0
        ? words.noPolicyAllows
        : html`<ul class="access-results">${results.map((result) => html`<${PolicyResult} key=${result.name} ...${result} policies=${policies} />`)}</ul>`,
    ],
  }));
  return html`
    <h2>${words.hidden}</h2>
    <${PlainTable} label=${words.hidden} heads=${[words.row, words.results]} rows=${rows} />
  `;
}

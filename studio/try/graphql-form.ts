import { useEffect, useState } from "preact/hooks";
import { CodeBlock } from "../components/code-block.ts";
import { TextArea } from "../components/field.ts";
import { Notice } from "../components/notice.ts";
import { Loading } from "../components/page.ts";
import { useLoaded } from "../components/use-loaded.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import { toCurl } from "./curl.ts";
import type { EditedRequest } from "./edited-request.ts";
import { type GraphqlSample, graphqlSample } from "./graphql-sample.ts";
import { loadGraphqlSchema } from "./graphql-schema.ts";
import { RunButtons, rowsOf } from "./request-form.ts";
import { ResponsePanel } from "./response-panel.ts";
import type { Operation, Subject } from "./subjects.ts";
import { useRun } from "./use-run.ts";

export type GraphqlFormProps = { readonly subject: Subject; readonly operation: Operation };

/** An operation that is made from what the caller sees of the schema. */
export function GraphqlForm({ subject, operation }: GraphqlFormProps) {
  const schema = useLoaded(loadGraphqlSchema, []);
  const [edited, setEdited] = useState<GraphqlSample | null>(null);
  const run = useRun();
  const reset = () => setEdited(schema.value && graphqlSample(schema.value, subject, operation));
  useEffect(reset, [schema.value]);
  if (schema.error)
    return html`<${Notice} kind="error" title=${texts.try.noSchema} error=${schema.error} onRetry=${schema.reload} />`;
  if (!schema.value) return html`<${Loading} text=${texts.try.loadingSchema} />`;
  if (!edited) return html`<${Notice}>${texts.try.noGraphql}<//>`;
  const request = toRequest(edited);
  return html`
    <${TextArea}
      label=${texts.try.document}
      rows=${rowsOf(edited.query, 6)}
      value=${edited.query}
      onInput=${(query: string) => setEdited({ ...edited, query })}
    />
    <${TextArea}
      label=${texts.try.variables}
      rows=${rowsOf(edited.variables, 2)}
      value=${edited.variables}
      error=${request ? null : texts.try.variablesInvalid}
      onInput=${(variables: string) => setEdited({ ...edited, variables })}
    />
    <${RunButtons}
      isRunning=${run.isRunning}
      disabled=${!request}
      mustConfirm=${/^\s*mutation\b[^{]*\{\s*(update|delete)/.test(edited.query)}
      onRun=${() => request && run.start(request)}
      onReset=${reset}
    />
    ${request && html`<${CodeBlock} label=${texts.try.code} text=${toCurl(request, { origin: window.location.origin, token: null })} />`}
    <${ResponsePanel} run=${run} />
  `;
}

/** Null if the variables are no JSON object. The digits of their numbers are sent as they are written. */
function toRequest({ query, variables }: GraphqlSample): EditedRequest | null {
  const text = variables.trim() || "{}";
  try {
    if (!text.startsWith("{")) return null;
    JSON.parse(text);
  } catch {
    return null;
  }
  const body = `{"query": ${JSON.stringify(query)}, "variables": ${text}}`;
  return { method: "POST", path: "/graphql", headers: "Content-Type: application/json", body };
}

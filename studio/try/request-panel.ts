import { useState } from "preact/hooks";
import { currentToken, viewedToken } from "../api/session.ts";
import { CodeBlock } from "../components/code-block.ts";
import { Checkbox } from "../components/field.ts";
import { Notice } from "../components/notice.ts";
import { Tabs } from "../components/tabs.ts";
import { useSearchParameter } from "../frame/router.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import { toCurl } from "./curl.ts";
import { type EditedRequest, type RequestContext, resourceRequest, tableRequest } from "./edited-request.ts";
import { GraphqlForm } from "./graphql-form.ts";
import { RequestForm } from "./request-form.ts";
import { ResponsePanel } from "./response-panel.ts";
import type { Operation, Subject } from "./subjects.ts";
import { toSupabaseJs } from "./supabase-js.ts";
import { useRun } from "./use-run.ts";

export type RequestPanelProps = {
  readonly subject: Subject;
  readonly operation: Operation;
  readonly context: RequestContext;
  readonly role: string;
};

const FORMS = ["curl", "supabase-js", "graphql", "rest"] as const;
type Form = (typeof FORMS)[number];

/** A request in the forms of all interfaces. */
export function RequestPanel({ subject, operation, context, role }: RequestPanelProps) {
  const [chosen, choose] = useSearchParameter("form");
  const form: Form = FORMS.find((name) => name === chosen) ?? "curl";
  const tabs = FORMS.map((name) => ({ name, title: texts.try.form[name] }));
  return html`
    <${Tabs} label=${texts.try.forms} tabs=${tabs} current=${form} onChange=${(name: string) => choose(name, { replace: true })}>
      <div class="try-form">
        <p class="quiet">${texts.try.about[form]} ${texts.try.runsAs(role)}</p>
        <${FormPanel} subject=${subject} operation=${operation} context=${context} form=${form} />
      </div>
    <//>
  `;
}

type FormPanelProps = Omit<RequestPanelProps, "role"> & { readonly form: Form };

function FormPanel({ subject, operation, context, form }: FormPanelProps) {
  const [request, setRequest] = useState(() => tableRequest(subject, operation, context));
  const [resource, setResource] = useState(() => resourceRequest(subject, operation, context));
  if (form === "graphql") return html`<${GraphqlForm} subject=${subject} operation=${operation} />`;
  if (form !== "rest") {
    const reset = () => setRequest(tableRequest(subject, operation, context));
    return html`<${HttpPanel} request=${request} form=${form} onChange=${setRequest} onReset=${reset} />`;
  }
  if (!resource) return html`<${Notice}>${texts.try.noRest}<//>`;
  const reset = () => setResource(resourceRequest(subject, operation, context));
  return html`<${HttpPanel} key="rest" request=${resource} form="rest" onChange=${setResource} onReset=${reset} />`;
}

type HttpPanelProps = {
  readonly request: EditedRequest;
  readonly form: Exclude<Form, "graphql">;
  readonly onChange: (request: EditedRequest) => void;
  readonly onReset: () => void;
};

function HttpPanel({ request, form, onChange, onReset }: HttpPanelProps) {
  const run = useRun();
  return html`
    <${RequestForm} request=${request} isRunning=${run.isRunning} onChange=${onChange} onReset=${onReset} onRun=${() => run.start(request)} />
    <${RequestCode} request=${request} form=${form} />
    <${ResponsePanel} run=${run} />
  `;
}

export type RequestCodeProps = { readonly request: EditedRequest; readonly form: Form };

/** The request as text to copy. */
export function RequestCode({ request, form }: RequestCodeProps) {
  const [hasToken, setHasToken] = useState(false);
  const target = { origin: window.location.origin, token: hasToken ? (viewedToken() ?? currentToken()) : null };
  const code = form === "supabase-js" ? toSupabaseJs(request, target) : toCurl(request, target);
  return html`
    <section class="stack">
      ${code === null ? html`<${Notice}>${texts.try.noSupabaseJs}<//>` : html`<${CodeBlock} label=${texts.try.code} text=${code} />`}
      <${Checkbox} label=${texts.try.withToken} checked=${hasToken} onChange=${setHasToken} />
    </section>
  `;
}

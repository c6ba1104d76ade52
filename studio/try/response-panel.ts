import { useState } from "preact/hooks";
import { parseExactly } from "../api/exact-json.ts";
import { CodeBlock } from "../components/code-block.ts";
import { Notice } from "../components/notice.ts";
import { Tabs } from "../components/tabs.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import type { Run, RunResult } from "./use-run.ts";

/** Longer texts make the page slow. */
const MAX_SHOWN = 200_000;

export function ResponsePanel({ run: { result, error } }: { readonly run: Run }) {
  return html`
    <section class="try-response" aria-live="polite">
      <h2>${texts.try.response}</h2>
      ${error && html`<${Notice} kind="error" error=${error} />`}
      ${result ? html`<${Result} result=${result} />` : !error && html`<p class="quiet">${texts.try.noResponse}</p>`}
    </section>
  `;
}

function Result({ result }: { readonly result: RunResult }) {
  const [tab, setTab] = useState("body");
  const tabs = [
    { name: "body", title: texts.try.bodyTab },
    { name: "headers", title: texts.try.headersTab },
  ];
  const headers = result.headers.map(([name, value]) => `${name}: ${value}`).join("\n");
  return html`
    <p class="row">
      <span class=${`badge ${result.status < 400 ? "good" : "danger"}`}>${`${result.status} ${result.statusText}`.trim()}</span>
      <span class="quiet">${texts.try.answered(result.milliseconds, formatSize(result.body))}</span>
    </p>
    <${Tabs} label=${texts.try.response} tabs=${tabs} current=${tab} onChange=${setTab}>
      ${tab === "headers" ? html`<${CodeBlock} label=${texts.try.responseHeaders} text=${headers} wrap />` : html`<${ResponseBody} text=${result.body} />`}
    <//>
  `;
}

function ResponseBody({ text }: { readonly text: string }) {
  if (text === "") return html`<p class="quiet">${texts.try.emptyBody}</p>`;
  const shown = formatBody(text);
  return html`
    ${shown.length > MAX_SHOWN && html`<p class="quiet">${texts.try.cut(formatSize(shown.slice(0, MAX_SHOWN)))}</p>`}
    <${CodeBlock} label=${texts.try.responseBody} text=${shown.slice(0, MAX_SHOWN)} wrap />
  `;
}

/** JSON with indentation and all digits; other text as it is. */
function formatBody(text: string): string {
  try {
    return JSON.stringify(parseExactly(text), null, 2);
  } catch {
    return text;
  }
}

function formatSize(text: string): string {
  const bytes = new Blob([text]).size;
  return bytes < 1000 ? `${bytes} B` : `${(bytes / 1000).toFixed(1)} kB`;
}

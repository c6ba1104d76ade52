import { Button } from "../components/button.ts";
import { formatTime } from "../components/format.ts";
import { Notice } from "../components/notice.ts";
import { PlainTable } from "../components/plain-table.ts";
import { useLoaded } from "../components/use-loaded.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import { readFunctionLines } from "./running-api.ts";

const words = texts.running.functions;
const KINDS = { debug: "", info: "", warn: "warning", error: "danger" } as const;

/** The last lines that functions have written, in all processes. */
export function FunctionLog() {
  const { value, error, reload } = useLoaded(readFunctionLines, []);
  const { at, id } = texts.running.search;
  const rows = (value?.lines ?? []).map(({ at: time, function: written, level, text, request }, index) => ({
    key: `${time} ${index}`,
    cells: [
      formatTime(time),
      written,
      html`<span class=${`badge ${KINDS[level]}`}>${level}</span>`,
      html`<code class="statement">${text}</code>`,
      request === null ? "" : html`<code>${request}</code>`,
    ],
  }));
  return html`
    <section class="stack" aria-label=${words.title}>
      <h2>${words.title}</h2>
      <div class="row"><${Button} size="small" icon="refresh" onClick=${reload}>${words.reload}<//></div>
      ${error && html`<${Notice} kind="error" error=${error} />`}
      ${value && rows.length === 0 && html`<p class="quiet">${words.none}</p>`}
      ${rows.length > 0 && html`<div class="request-log"><${PlainTable} label=${words.title} heads=${[at, words.name, words.level, words.text, id]} rows=${rows} /></div>`}
    </section>
  `;
}

import { useState } from "preact/hooks";
import { useLoaded } from "../api/use-loaded.ts";
import { Button } from "../components/button.ts";
import { TextField } from "../components/field.ts";
import { Notice } from "../components/notice.ts";
import { PlainTable } from "../components/plain-table.ts";
import { Select } from "../components/select.ts";
import { useDelayed } from "../components/use-delayed.ts";
import { html } from "../html.ts";
import { formatDuration, formatTime } from "../texts/format.ts";
import { texts } from "../texts.ts";
import { type RequestFilter, searchRequests } from "./running-api.ts";

const words = texts.running.search;
const STATUSES = Object.entries(words.statuses)
  .map(([value, label]) => ({ value, label }))
  .sort((one, other) => one.value.localeCompare(other.value));

/** Searches the last requests of all processes by the text of their log lines. */
export function RequestSearch() {
  const [filter, setFilter] = useState<RequestFilter>({ search: "", status: "", least_ms: "" });
  const change = (changes: Partial<RequestFilter>) => setFilter((before) => ({ ...before, ...changes }));
  const { search, status } = filter;
  const least = filter.least_ms.replace(/\D/g, "");
  const typed = useDelayed(`${search}\n${least}`);
  const { value, error, reload } = useLoaded(
    (signal) => searchRequests({ search, status, least_ms: least }, signal),
    [typed, status],
  );
  const { status: statusHead, duration, interface: name } = texts.running.columns;
  const rows = (value?.requests ?? []).map((each) => ({
    key: `${each.id} ${each.at}`,
    cells: [
      formatTime(each.at),
      html`<code>${each.method} ${each.path}</code>`,
      html`<span class=${`badge ${kindOf(each.status)}`}>${each.status}</span>`,
      formatDuration(each.milliseconds),
      each.interface,
      html`<code>${each.id}</code>`,
    ],
  }));
  return html`
    <section class="stack" aria-label=${words.title}>
      <h2>${words.title}</h2>
      <div class="form-grid">
        <${TextField} label=${words.words} type="search" value=${search} onInput=${(text: string) => change({ search: text })} />
        <${Select} label=${words.status} value=${status} options=${STATUSES} onChange=${(text: string) => change({ status: text })} />
        <${TextField} label=${words.least} type="number" value=${filter.least_ms} onInput=${(text: string) => change({ least_ms: text })} />
      </div>
      <div class="row">
        <${Button} size="small" icon="refresh" onClick=${reload}>${words.reload}<//>
        <span role="status" class="quiet">${value && words.of(rows.length, value.searched, value.kept_per_process, value.log_megabytes)}</span>
      </div>
      ${error && html`<${Notice} kind="error" error=${error} />`}
      ${value && rows.length === 0 && html`<p class="quiet">${words.none}</p>`}
      ${rows.length > 0 && html`<div class="request-log"><${PlainTable} label=${words.title} heads=${[words.at, words.method, statusHead, duration, name, words.id]} rows=${rows} /></div>`}
    </section>
  `;
}

export function kindOf(status: number): string {
  if (status >= 500) return "danger";
  return status >= 400 ? "warning" : "good";
}

import type { RunningState } from "#operations/admin-types";
import { useLoaded } from "../api/use-loaded.ts";
import { Button } from "../components/button.ts";
import { Notice } from "../components/notice.ts";
import { PlainTable, Section } from "../components/plain-table.ts";
import { html } from "../html.ts";
import { formatBytes, formatDuration, formatNumber, formatTime } from "../texts/format.ts";
import { texts } from "../texts.ts";
import { jobErrorMessage } from "./jobs/job-error.ts";
import { Schedules, Webhooks } from "./jobs/job-sections.ts";
import { kindOf, RequestSearch } from "./request-search.ts";
import { readFunctionLines } from "./running-api.ts";
import { type RunningHistory, summarizeInterfaces } from "./running-history.ts";

const functionWords = texts.running.functions;
const KINDS_OF_LEVELS = { debug: "", info: "", warn: "warning", error: "danger" } as const;

type ServiceProps = {
  readonly history: RunningHistory;
  readonly state: RunningState;
  readonly onChange: () => void;
};

/** Requests, errors, functions, tasks, schedules, webhooks, processes and replicas. */
export function ServiceSections({ history, state, onChange }: ServiceProps) {
  return html`
    <${Interfaces} history=${history} />
    <${RequestSearch} />
    <${Errors} state=${state} />
    <${FunctionLog} />
    <${Tasks} state=${state} />
    <${Schedules} schedules=${state.schedules} onChange=${onChange} />
    <${Webhooks} webhooks=${state.webhooks} at=${state.at} onChange=${onChange} />
    <${Processes} state=${state} />
    <${Replicas} state=${state} />
  `;
}

function Interfaces({ history }: { readonly history: RunningHistory }) {
  const { interface: name, perSecond, status, p50, p99 } = texts.running.columns;
  const rows = summarizeInterfaces(history).map((each) => ({
    key: each.name,
    cells: [
      each.name,
      formatNumber(each.perSecond),
      Object.entries(each.statuses).map(
        ([code, count]) => html`<span class=${`badge ${kindOf(Number(code))}`}>${code}: ${count}</span> `,
      ),
      formatDuration(each.p50),
      formatDuration(each.p99),
    ],
  }));
  return html`
    <${Section} title=${texts.running.requests} count=${rows.length} empty=${texts.running.noRequests}>
      <${PlainTable} label=${texts.running.requests} heads=${[name, perSecond, status, p50, p99]} rows=${rows} />
    <//>
  `;
}

function Errors({ state }: { readonly state: RunningState }) {
  const { code, count } = texts.running.columns;
  const rows = Object.entries(state.errors)
    .sort(([, a], [, b]) => b - a)
    .map(([name, number]) => ({
      key: name,
      cells: [
        html`<a href=${`/docs/errors#${name}`} target="_blank" rel="noreferrer"><code>${name}</code></a>`,
        number,
      ],
    }));
  return html`
    <${Section} title=${texts.running.errors} count=${rows.length} empty=${texts.running.noErrors}>
      <${PlainTable} label=${texts.running.errors} heads=${[code, count]} rows=${rows} />
    <//>
  `;
}

/** The last lines that functions have written, in all processes. */
function FunctionLog() {
  const { value, error, reload } = useLoaded(readFunctionLines, []);
  const { at, id } = texts.running.search;
  const rows = (value?.lines ?? []).map(({ at: time, function: written, level, text, request }, index) => ({
    key: `${time} ${index}`,
    cells: [
      formatTime(time),
      written,
      html`<span class=${`badge ${KINDS_OF_LEVELS[level]}`}>${level}</span>`,
      html`<code class="statement">${text}</code>`,
      request === null ? "" : html`<code>${request}</code>`,
    ],
  }));
  return html`
    <section class="stack" aria-label=${functionWords.title}>
      <h2>${functionWords.title}</h2>
      <div class="row"><${Button} size="small" icon="refresh" onClick=${reload}>${functionWords.reload}<//></div>
      ${error && html`<${Notice} kind="error" error=${error} />`}
      ${value && rows.length === 0 && html`<p class="quiet">${functionWords.none}</p>`}
      ${rows.length > 0 && html`<div class="request-log"><${PlainTable} label=${functionWords.title} heads=${[at, functionWords.name, functionWords.level, functionWords.text, id]} rows=${rows} /></div>`}
    </section>
  `;
}

function Tasks({ state }: { readonly state: RunningState }) {
  const { tasks } = state;
  if (!tasks) return null;
  const { task, status, created, message } = texts.running.columns;
  const rows = tasks.tasks.map((each) => ({
    key: each.id,
    cells: [
      html`<code>${each.work}</code>`,
      html`<span class=${`badge ${each.status === "failed" ? "danger" : ""}`}>${each.status}</span>`,
      formatTime(each.created_at),
      jobErrorMessage(each.error),
    ],
  }));
  const { queued, running, failed } = tasks;
  return html`
    <${Section} title=${texts.running.tasks} count=${rows.length} empty=${texts.running.noTasks}>
      <p>${texts.running.taskCounts(queued, running, failed)}</p>
      <${PlainTable} label=${texts.running.tasks} heads=${[task, status, created, message]} rows=${rows} />
    <//>
  `;
}

function Processes({ state }: { readonly state: RunningState }) {
  const { pid, uptime, processor, memory, heap } = texts.running.columns;
  const rows = state.processes.map((each) => ({
    key: String(each.pid),
    cells: [
      each.pid,
      formatDuration(each.uptime_seconds * 1000),
      formatDuration(each.processor_seconds * 1000),
      formatBytes(each.memory_bytes),
      formatBytes(each.heap_bytes),
    ],
  }));
  return html`
    <${Section} title=${texts.running.processes} count=${rows.length} empty="">
      <${PlainTable} label=${texts.running.processes} heads=${[pid, uptime, processor, memory, heap]} rows=${rows} />
    <//>
  `;
}

function Replicas({ state }: { readonly state: RunningState }) {
  if (state.replicas.length === 0) return null;
  const { replica, status, lag } = texts.running.columns;
  const rows = state.replicas.map(({ status: current, lag_seconds: seconds }, index) => ({
    key: String(index),
    cells: [index + 1, current, seconds === null ? texts.running.unknown : formatDuration(seconds * 1000)],
  }));
  return html`
    <${Section} title=${texts.running.replicas} count=${rows.length} empty="">
      <${PlainTable} label=${texts.running.replicas} heads=${[replica, status, lag]} rows=${rows} />
    <//>
  `;
}

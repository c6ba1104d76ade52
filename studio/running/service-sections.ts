import { formatBytes, formatCount, formatDuration, formatNumber, formatTime } from "../components/format.ts";
import { PlainTable, Section } from "../components/plain-table.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import type { ListedSchedule, ListedWebhook, RunningState } from "./running-api.ts";
import { type RunningHistory, summarizeInterfaces } from "./running-history.ts";

type ServiceProps = { readonly history: RunningHistory; readonly state: RunningState };

/** Requests, errors, tasks, schedules, webhooks, processes and replicas. */
export function ServiceSections({ history, state }: ServiceProps) {
  return html`
    <${Interfaces} history=${history} />
    <${Errors} state=${state} />
    <${Tasks} state=${state} />
    <${Schedules} schedules=${state.schedules} />
    <${Webhooks} webhooks=${state.webhooks} at=${state.at} />
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
        ([code, count]) => html`<span class=${`badge ${kindOf(code)}`}>${code}: ${count}</span> `,
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

function kindOf(status: string): string {
  if (status >= "500") return "danger";
  return status >= "400" ? "warning" : "good";
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
      each.error?.message ?? "",
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

function Schedules({ schedules }: { readonly schedules: readonly ListedSchedule[] | null }) {
  if (!schedules) return null;
  const { schedule, cron, next, lastRun, duration, status, message } = texts.running.columns;
  const rows = schedules.map(({ last_run: last, ...each }) => ({
    key: each.name,
    cells: [
      each.name,
      html`<code>${each.cron}</code> <span class="quiet">${each.time_zone}</span>`,
      each.next_run_at ? formatTime(each.next_run_at) : "",
      html`<${ScheduleStatus} schedule=${each} />`,
      last &&
        html`<span class=${`badge ${RUN_KINDS[last.status] ?? ""}`}>${last.status}</span> ${formatTime(last.planned_at)}`,
      last?.milliseconds == null ? "" : formatDuration(last.milliseconds),
      last?.error?.message ?? "",
    ],
  }));
  const heads = [schedule, cron, next, status, lastRun, duration, message];
  return html`
    <${Section} title=${texts.running.schedules} count=${rows.length} empty=${texts.running.noSchedules}>
      <${PlainTable} label=${texts.running.schedules} heads=${heads} rows=${rows} hasRowHeads />
    <//>
  `;
}

const RUN_KINDS: Readonly<Record<string, string>> = {
  done: "good",
  failed: "danger",
  missed: "warning",
  skipped: "warning",
};

function ScheduleStatus({ schedule }: { readonly schedule: Pick<ListedSchedule, "current_run" | "is_enabled"> }) {
  const { current_run: current, is_enabled: isEnabled } = schedule;
  if (current?.started_at)
    return html`<span class="badge">${current.status}</span> ${texts.running.since(formatTime(current.started_at))}`;
  if (current) return html`<span class="badge">${current.status}</span>`;
  return isEnabled ? texts.running.waits : html`<span class="badge warning">${texts.running.disabled}</span>`;
}

type WebhooksProps = { readonly webhooks: readonly ListedWebhook[] | null; readonly at: string };

function Webhooks({ webhooks, at }: WebhooksProps) {
  if (!webhooks) return null;
  const { webhook, changes, address, status, waiting, oldest, delivered, dead, message } = texts.running.columns;
  const rows = webhooks.map((each) => ({
    key: each.name,
    cells: [
      each.name,
      html`<code>${each.table}</code> ${each.events.join(", ")}`,
      html`<code>${each.origin}</code>`,
      html`<span class=${`badge ${each.state === "enabled" ? "good" : "danger"}`}>${each.state}</span>`,
      formatCount(each.pending),
      each.oldest_at ? formatDuration(Math.max(0, Date.parse(at) - Date.parse(each.oldest_at))) : "",
      each.delivered_at ? formatTime(each.delivered_at) : texts.running.never,
      each.dead === 0 ? "0" : html`<span class="badge danger">${formatCount(each.dead)}</span>`,
      each.disabled_because ?? each.last_error ?? "",
    ],
  }));
  const heads = [webhook, changes, address, status, waiting, oldest, delivered, dead, message];
  return html`
    <${Section} title=${texts.running.webhooks} count=${rows.length} empty=${texts.running.noWebhooks}>
      <${PlainTable} label=${texts.running.webhooks} heads=${heads} rows=${rows} hasRowHeads />
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

import type { ListedWebhook, ScheduleState } from "#operations/admin-types";
import { PlainTable, Section } from "../../components/plain-table.ts";
import { html } from "../../html.ts";
import { formatCount, formatDuration, formatTime } from "../../texts/format.ts";
import { texts } from "../../texts.ts";
import { JobActions, NewJobButton } from "./job-actions.ts";
import { jobErrorMessage } from "./job-error.ts";

type SchedulesProps = { readonly schedules: readonly ScheduleState[] | null; readonly onChange: () => void };

export function Schedules({ schedules, onChange }: SchedulesProps) {
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
      jobErrorMessage(last?.error),
      html`<${JobActions} kind="schedule" name=${each.name} isEnabled=${each.is_enabled} onChange=${onChange} />`,
    ],
  }));
  const heads = [schedule, cron, next, status, lastRun, duration, message, texts.jobs.actions];
  return html`
    <${Section} title=${texts.running.schedules} count=${rows.length} empty=${texts.running.noSchedules}>
      <${PlainTable} label=${texts.running.schedules} heads=${heads} rows=${rows} hasRowHeads />
    <//>
    <${NewJobButton} kind="schedule" onChange=${onChange} />
  `;
}

const RUN_KINDS: Readonly<Record<string, string>> = {
  done: "good",
  failed: "danger",
  missed: "warning",
  skipped: "warning",
};

function ScheduleStatus({ schedule }: { readonly schedule: Pick<ScheduleState, "current_run" | "is_enabled"> }) {
  const { current_run: current, is_enabled: isEnabled } = schedule;
  if (current?.started_at)
    return html`<span class="badge">${current.status}</span> ${texts.running.since(formatTime(current.started_at))}`;
  if (current) return html`<span class="badge">${current.status}</span>`;
  return isEnabled ? texts.running.waits : html`<span class="badge warning">${texts.running.disabled}</span>`;
}

type WebhooksProps = {
  readonly webhooks: readonly ListedWebhook[] | null;
  readonly at: string;
  readonly onChange: () => void;
};

export function Webhooks({ webhooks, at, onChange }: WebhooksProps) {
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
      html`<${JobActions} kind="webhook" name=${each.name} isEnabled=${each.state === "enabled"} dead=${each.dead} onChange=${onChange} />`,
    ],
  }));
  const names = [webhook, changes, address, status, waiting, oldest, delivered, dead, message];
  const heads = [...names, texts.jobs.actions];
  return html`
    <${Section} title=${texts.running.webhooks} count=${rows.length} empty=${texts.running.noWebhooks}>
      <${PlainTable} label=${texts.running.webhooks} heads=${heads} rows=${rows} hasRowHeads />
    <//>
    <${NewJobButton} kind="webhook" onChange=${onChange} />
  `;
}

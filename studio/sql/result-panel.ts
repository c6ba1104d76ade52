import { useEffect, useMemo, useState } from "preact/hooks";
import type { SqlMessage, SqlResponse, SqlResult, StatementPlan } from "#operations/admin-types";
import { Button } from "../components/button.ts";
import { Menu, type MenuItem } from "../components/menu.ts";
import { Notice } from "../components/notice.ts";
import { Empty } from "../components/page.ts";
import { saveFile } from "../components/save-file.ts";
import { Select } from "../components/select.ts";
import { showToast } from "../components/toast.ts";
import { html } from "../html.ts";
import { formatDuration } from "../texts/format.ts";
import { texts } from "../texts.ts";
import { suggestChart } from "./chart/chart-data.ts";
import { ChartView } from "./chart/chart-view.ts";
import { PlanPicture, PlanText } from "./plan/plan-view.ts";
import type { QueryRun } from "./query-runs.ts";
import { writeResultCsv, writeResultJson, writeResultText } from "./result-files.ts";
import { ResultGrid } from "./result-grid.ts";

type View = "grid" | "chart" | "plan" | "planText";

/** The result of the last run of a query. */
export function ResultPanel({ run }: { readonly run: QueryRun | undefined }) {
  if (!run) return html`<${Empty}>${texts.sql.notRun}<//>`;
  if (run.state === "running") return html`<${RunningClock} startedAt=${run.startedAt} />`;
  if (run.state === "done") return html`<${Results} key=${run.startedAt} response=${run.response} />`;
  if (run.error === null) return html`<${Empty}>${texts.sql.stopped}<//>`;
  return html`<div class="sql-message"><${Notice} kind="error" error=${run.error} /></div>`;
}

function RunningClock({ startedAt }: { readonly startedAt: number }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.max(0, Math.floor((now - startedAt) / 1000));
  return html`<${Empty}><p role="timer">${texts.sql.running(seconds)}</p><//>`;
}

function Results({ response }: { readonly response: SqlResponse }) {
  const { results, error, notices, dropped_notices: dropped } = response;
  const lastWithRows = results.findLastIndex((result) => result.columns !== null);
  const [chosen, setChosen] = useState(lastWithRows < 0 ? results.length - 1 : lastWithRows);
  const result = results[chosen];
  return html`
    ${error && html`<${SqlError} error=${error} />`}
    ${(notices.length > 0 || dropped > 0) && html`<${Notices} notices=${notices} dropped=${dropped} />`}
    ${result && html`<${Result} key=${chosen} result=${result} chooser=${results.length > 1 && html`<${ResultChooser} results=${results} chosen=${chosen} onChange=${setChosen} />`} />`}
    ${!result && !error && html`<${Empty}>${texts.sql.noResult}<//>`}
  `;
}

type ResultChooserProps = {
  readonly results: readonly SqlResult[];
  readonly chosen: number;
  readonly onChange: (index: number) => void;
};

function ResultChooser({ results, chosen, onChange }: ResultChooserProps) {
  const options = results.map((result, index) => ({
    value: String(index),
    label: texts.sql.resultTab(index + 1, commandOf(result)),
  }));
  return html`
    <${Select} label=${texts.sql.results} hideLabel value=${String(chosen)} options=${options} onChange=${(value: string) => onChange(Number(value))} />
  `;
}

function commandOf({ command, rows, plan }: SqlResult): string {
  return plan ? texts.sql.plan : (command ?? texts.sql.cutCommand(rows.length));
}

function SqlError({ error }: { readonly error: SqlMessage }) {
  const { sqlstate, message, detail, hint, where, line, column } = error;
  return html`
    <div class="sql-message">
      <${Notice} kind="error" title=${message}>
        ${detail && html`<p>${detail}</p>`}${hint && html`<p>${hint}</p>`}
        ${where && html`<pre class="sql-where">${where}</pre>`}
        <p class="quiet">
          ${line !== null && column !== null ? `${texts.sql.errorAt(line, column)} · ` : ""}SQLSTATE ${sqlstate} · ${texts.sql.rolledBack}
        </p>
      <//>
    </div>
  `;
}

function Notices({ notices, dropped }: { readonly notices: readonly SqlMessage[]; readonly dropped: number }) {
  return html`
    <div class="sql-message">
      <ul class="sql-notices" aria-label=${texts.sql.messages} tabindex="0">
        ${notices.map(({ severity, message, detail }, index) => html`<li key=${index}><strong>${severity}</strong> ${message} ${detail}</li>`)}
        ${dropped > 0 && html`<li class="quiet">${texts.sql.droppedNotices(dropped)}</li>`}
      </ul>
    </div>
  `;
}

function Result({ result, chooser }: { readonly result: SqlResult; readonly chooser: unknown }) {
  const plan = useMemo(() => planOf(result), [result]);
  const views = viewsOf(result, plan);
  const [view, setView] = useState<View | undefined>(views[0]);
  return html`
    <div class="sql-result-head">
      ${chooser}
      ${views.length > 1 && html`<${ViewButtons} views=${views} current=${view} onChange=${setView} />`}
      <span class="quiet">${commandOf(result)} · ${formatDuration(result.duration_ms)}</span>
      ${result.cut && html`<span class="badge warning">${cutText(result)}</span>`}
      ${result.columns !== null && !result.plan && html`<${ResultMenu} result=${result} />`}
    </div>
    ${view && html`<div class="sql-result">${viewOf(view, result, plan)}</div>`}
  `;
}

function viewOf(view: View, { columns, rows }: SqlResult, plan: StatementPlan | null) {
  switch (view) {
    case "grid":
      return html`<${ResultGrid} columns=${columns} rows=${rows} />`;
    case "chart":
      return html`<${ChartView} columns=${columns} rows=${rows} />`;
    case "plan":
      return html`<${PlanPicture} statement=${plan} />`;
    case "planText":
      return html`<${PlanText} statement=${plan} />`;
  }
}

function cutText({ cut, rows }: SqlResult): string {
  return cut === "rows" ? texts.sql.cutByRows(rows.length) : texts.sql.cutByBytes;
}

function viewsOf({ columns, rows, plan: isExplained }: SqlResult, plan: StatementPlan | null): View[] {
  return [
    ...(plan ? (["plan", "planText"] as const) : []),
    ...(columns && !isExplained ? (["grid"] as const) : []),
    ...(columns && !isExplained && suggestChart(columns, rows) ? (["chart"] as const) : []),
  ];
}

/** Returns the plan; also that of an `explain (format json)` that was written by hand. */
function planOf({ plan, columns, rows }: SqlResult): StatementPlan | null {
  if (plan) return plan[0] ?? null;
  const [column] = columns ?? [];
  if (column?.name !== "QUERY PLAN" || column.type !== "json") return null;
  return (JSON.parse(rows[0]?.[0] ?? "[]") as StatementPlan[])[0] ?? null;
}

type ViewButtonsProps = {
  readonly views: readonly View[];
  readonly current: View | undefined;
  readonly onChange: (view: View) => void;
};

function ViewButtons({ views, current, onChange }: ViewButtonsProps) {
  return html`
    <div class="row" role="group" aria-label=${texts.sql.views}>
      ${views.map((view) => html`<${Button} key=${view} size="small" pressed=${view === current} onClick=${() => onChange(view)}>${texts.sql[view]}<//>`)}
    </div>
  `;
}

function ResultMenu({ result }: { readonly result: SqlResult }) {
  const copy = async () => {
    await navigator.clipboard.writeText(writeResultText(result));
    showToast({ text: texts.sql.copied });
  };
  const saveCsv = (forSpreadsheets: boolean) =>
    saveFile("result.csv", new Blob([writeResultCsv(result, forSpreadsheets)], { type: "text/csv" }));
  const items: MenuItem[] = [
    { label: texts.sql.csv, icon: "download", onSelect: () => saveCsv(false) },
    { label: texts.sql.csvForSpreadsheets, icon: "download", onSelect: () => saveCsv(true) },
    {
      label: texts.sql.json,
      icon: "download",
      onSelect: () => saveFile("result.json", new Blob([writeResultJson(result)], { type: "application/json" })),
    },
    { label: texts.sql.copyAll, icon: "copy", onSelect: copy },
  ];
  return html`<${Menu} label=${texts.sql.download} icon="download" items=${items} />`;
}

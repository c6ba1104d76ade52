import type { FilledSoFar, IncompleteBackfill } from "#operations/admin-types";
import { useLoaded, useRepeatedLoads } from "../api/use-loaded.ts";
import { Button } from "../components/button.ts";
import { CodeBlock } from "../components/code-block.ts";
import { Notice } from "../components/notice.ts";
import { Empty, Loading } from "../components/page.ts";
import { showToast } from "../components/toast.ts";
import { html } from "../html.ts";
import { formatTime } from "../texts/format.ts";
import { texts } from "../texts.ts";
import { listBackfills, pauseBackfill } from "./changes-api.ts";
import { RefusalNotice } from "./copy-task.ts";

const words = texts.changes.backfills;
const BADGES: Readonly<Record<IncompleteBackfill["state"], string>> = {
  "not started": "",
  running: "good",
  paused: "warning",
  stopped: "danger",
};

/** The incomplete backfills of applied plans, with their progress. */
export function BackfillsTab() {
  const loaded = useLoaded(listBackfills, []);
  useRepeatedLoads(loaded);
  const { value, error, isLoading, reload } = loaded;
  const pause = async ({ id, state }: IncompleteBackfill) => {
    try {
      await pauseBackfill(id, state === "running");
    } catch (failure) {
      showToast({ kind: "error", text: (failure as Error).message });
    }
    reload();
  };
  return html`
    <p class="quiet">${words.intro}</p>
    ${error && html`<${Notice} kind="error" error=${error} onRetry=${reload} />`}
    ${!value && isLoading && html`<${Loading} />`}
    ${value?.backfills.length === 0 && html`<${Empty}>${words.none}<//>`}
    ${value && value.backfills.length > 0 && html`<${RefusalNotice} refusal=${value.refusal} command=${value.run_command} />`}
    <ol class="changes-list">
      ${value?.backfills.map(
        (each) => html`
          <${BackfillItem} key=${each.id} backfill=${each} command=${value.run_command} isRefused=${value.refusal !== null} onPause=${() => pause(each)} />
        `,
      )}
    </ol>
  `;
}

type BackfillItemProps = {
  readonly backfill: IncompleteBackfill;
  readonly command: string;
  readonly isRefused: boolean;
  /** Pauses or resumes the backfill. */
  readonly onPause: () => void;
};

function BackfillItem({ backfill, command, isRefused, onPause }: BackfillItemProps) {
  const { table, column, state, progress, estimated_rows: estimated } = backfill;
  const name = `${table}.${column}`;
  const hasSession = state === "running" || state === "paused";
  return html`
    <li class="stack">
      <div class="row">
        <h2 class="row">
          <span class=${`badge ${BADGES[state]}`}>${words.states[state]}</span>
          <span class="changes-name">${name}</span>
        </h2>
        ${
          hasSession &&
          html`
            <${Button} size="small" icon=${state === "running" ? "stop" : "play"} disabled=${isRefused} onClick=${onPause}>
              ${state === "running" ? words.pause : words.resume}
            <//>
          `
        }
      </div>
      ${progress && html`<progress aria-label=${words.progressOf(name)} max=${Math.max(estimated, progress.read, 1)} value=${progress.read}></progress>`}
      ${
        progress &&
        html`
          <ul class="changes-measures">
            ${describeProgress(backfill, progress).map((measure) => html`<li key=${measure}>${measure}</li>`)}
          </ul>
        `
      }
      ${progress?.error && html`<${Notice} kind="warning">${progress.error}<//>`}
      ${!hasSession && html`<p class="quiet">${progress ? words.goOnBy : words.startBy}</p>`}
      ${!hasSession && html`<${CodeBlock} text=${command} label=${texts.changes.command} />`}
    </li>
  `;
}

function describeProgress(
  { state, estimated_rows: estimated }: IncompleteBackfill,
  progress: FilledSoFar,
): readonly string[] {
  const { read, filled, rows_per_second: rate, load, waits_for: waitsFor, started_at: startedAt } = progress;
  return [
    words.rows(read, estimated, filled),
    ...(state === "running" ? [words.rate(rate)] : []),
    words.load(load),
    ...(state === "running" && waitsFor !== null ? [words.waits(waitsFor)] : []),
    words.since(formatTime(startedAt)),
  ];
}

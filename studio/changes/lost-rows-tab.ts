import { useState } from "preact/hooks";
import type { FoundLostRows, LostRowsOfTable } from "#operations/admin-types";
import { useLoaded } from "../api/use-loaded.ts";
import { ActionDialog } from "../components/action-dialog.ts";
import { Button } from "../components/button.ts";
import { CodeBlock } from "../components/code-block.ts";
import { Checkbox, TextField } from "../components/field.ts";
import { Notice } from "../components/notice.ts";
import { Loading } from "../components/page.ts";
import { html } from "../html.ts";
import { formatTime } from "../texts/format.ts";
import { texts } from "../texts.ts";
import { findLostRows, readLostRowsState, restoreLostRows } from "./changes-api.ts";
import { RefusalNotice } from "./copy-task.ts";
import { useTask } from "./use-task.ts";

const words = texts.changes.lostRows;

/** Rows that were deleted or overwritten since a time. */
export function LostRowsTab() {
  const { value, error, isLoading, reload } = useLoaded(readLostRowsState, []);
  const [time, setTime] = useState("10 minutes ago");
  const [restored, setRestored] = useState<FoundLostRows | null>(null);
  const task = useTask(findLostRows);
  const find = (event: Event) => {
    event.preventDefault();
    setRestored(null);
    task.run(time);
  };
  const times = value?.recoverable;
  const hint = times && words.timeHint(formatTime(times.from), formatTime(times.to));
  return html`
    <p class="quiet">${words.intro}</p>
    ${error && html`<${Notice} kind="error" error=${error} onRetry=${reload} />`}
    ${!value && isLoading && html`<${Loading} />`}
    ${value && html`<${RefusalNotice} refusal=${value.refusal} command=${value.command} />`}
    ${
      value?.refusal === null &&
      html`
        <form class="stack" onSubmit=${find}>
          <${TextField} label=${words.time} hint=${hint} value=${time} required onInput=${setTime} />
          <div class="row">
            <${Button} type="submit" kind="primary" icon="search" busy=${task.isRunning}>${words.find}<//>
            ${task.isRunning && html`<progress aria-label=${words.find}></progress>`}
            ${task.isRunning && html`<p class="quiet" role="status">${words.progress}</p>`}
          </div>
        </form>
      `
    }
    ${task.error && html`<${Notice} kind="error" error=${task.error} />`}
    ${restored && html`<${RestoredRows} restored=${restored} />`}
    ${!restored && task.result && html`<${FoundRows} found=${task.result} onRestored=${setRestored} />`}
  `;
}

type FoundRowsProps = { readonly found: FoundLostRows; readonly onRestored: (restored: FoundLostRows) => void };

function FoundRows({ found, onRestored }: FoundRowsProps) {
  const { as_of: asOf, compared_tables: compared, dropped_tables: dropped, tables } = found;
  const [isAsking, setAsking] = useState(false);
  const [overwrite, setOverwrite] = useState(false);
  const act = async () => onRestored(await restoreLostRows(asOf, overwrite));
  const hasLost = tables.some(({ missing, different }) => missing > 0 || different > 0);
  return html`
    <p role="status">${words.asOf(formatTime(asOf), compared - tables.length, compared)}</p>
    ${dropped.map(
      (table) => html`
        <${Notice} key=${table} kind="warning">
          <p>${words.dropped(table)}</p>
          <${CodeBlock} text=${found.copy_command} label=${texts.changes.command} />
        <//>
      `,
    )}
    <ol class="changes-list">
      ${tables.map((each) => html`<${TableItem} key=${each.table} lost=${each} />`)}
    </ol>
    ${hasLost && html`<div class="row"><${Button} kind="primary" onClick=${() => setAsking(true)}>${words.restore}<//></div>`}
    ${
      isAsking &&
      html`
        <${ActionDialog} title=${words.restore} action=${words.restore} onAct=${act} onClose=${() => setAsking(false)}>
          <p>${words.restoreHint}</p>
          <${Checkbox} label=${words.overwrite} checked=${overwrite} onChange=${setOverwrite} />
        <//>
      `
    }
  `;
}

function TableItem({ lost }: { readonly lost: LostRowsOfTable }) {
  const { table, missing_examples: missing, different_examples: different } = lost;
  return html`
    <li class="stack">
      <h2 class="changes-name">${table}</h2>
      <ul class="changes-measures">
        ${describeCounts(lost).map((measure) => html`<li key=${measure}>${measure}</li>`)}
      </ul>
      ${missing.length > 0 && html`<p class="quiet">${words.missingExamples(table)}</p>`}
      ${missing.length > 0 && html`<${CodeBlock} text=${missing.join("\n")} label=${words.missingExamples(table)} wrap />`}
      ${different.length > 0 && html`<p class="quiet">${words.differentExamples(table)}</p>`}
      ${different.length > 0 && html`<${CodeBlock} text=${different.join("\n")} label=${words.differentExamples(table)} wrap />`}
    </li>
  `;
}

function describeCounts(lost: LostRowsOfTable): readonly string[] {
  const { missing, different, only_here: onlyHere, gone_columns: gone, added_columns: added, dependents } = lost;
  return [
    ...(missing > 0 ? [words.missing(missing)] : []),
    ...(different > 0 ? [words.different(different)] : []),
    ...(onlyHere ? [words.onlyHere(onlyHere)] : []),
    ...(gone.length > 0 ? [words.gone(gone)] : []),
    ...(added.length > 0 ? [words.added(added)] : []),
    ...(missing > 0 && dependents.length > 0 ? [words.dependents(dependents)] : []),
  ];
}

function RestoredRows({ restored: { tables } }: { readonly restored: FoundLostRows }) {
  const sum = (count: (table: LostRowsOfTable) => number | null) =>
    tables.reduce((total, table) => total + (count(table) ?? 0), 0);
  const skipped = tables.filter(({ skipped_triggers: triggers }) => (triggers ?? []).length > 0);
  return html`
    <p role="status">${words.restored(
      sum(({ inserted }) => inserted),
      sum(({ updated }) => updated),
    )}</p>
    ${skipped.map(
      ({ table, skipped_triggers: triggers }) => html`
        <${Notice} key=${table} kind="warning">${words.skippedTriggers(table, triggers ?? [])}<//>
      `,
    )}
  `;
}

import type { MigrationsState, PendingFile } from "#operations/admin-types";
import { CodeBlock } from "../components/code-block.ts";
import { PlainTable, Section } from "../components/plain-table.ts";
import { html } from "../html.ts";
import { formatTime } from "../texts/format.ts";
import { texts } from "../texts.ts";

import { UndoSection } from "./undo-section.ts";

const words = texts.changes;

type PendingTabProps = { readonly list: MigrationsState; readonly onUndone: () => void };

export function PendingTab({ list, onUndone }: PendingTabProps) {
  const { pending, applied, commands } = list;
  const { migration, history, appliedAt } = words.columns;
  const rows = applied.map((each) => ({
    key: `${each.history}/${each.name}`,
    cells: [each.name, each.history ?? "", formatTime(each.applied_at)],
  }));
  const [hasCommitted, hasCurrent] = [
    pending.some((each) => !each.is_current),
    pending.some((each) => each.is_current),
  ];
  return html`
    <${Section} title=${words.pending} count=${pending.length} empty=${words.nothingPending}>
      ${hasCommitted && html`<p class="quiet">${words.committedBy(commands.migrate)}</p>`}
      ${hasCurrent && html`<p class="quiet">${words.currentBy(commands.commit)}</p>`}
      ${pending.map((each) => html`<${PendingItem} key=${each.file} migration=${each} isOpen=${pending.length === 1} />`)}
    <//>
    <${Section} title=${words.applied} count=${applied.length} empty=${words.nothingApplied}>
      <${PlainTable} label=${words.applied} heads=${[migration, history, appliedAt]} rows=${rows} hasRowHeads />
    <//>
    ${applied.some(({ history }) => history === "project") && html`<${UndoSection} key=${applied[0]?.name} list=${list} onUndone=${onUndone} />`}
  `;
}

function PendingItem({ migration, isOpen }: { readonly migration: PendingFile; readonly isOpen: boolean }) {
  const { history, name, file, is_current: isCurrent, is_applied: isApplied, sql } = migration;
  return html`
    <details class="changes-item" open=${isOpen}>
      <summary>
        <span class="changes-name">${name}</span>
        <span class="badge">${history}</span>
        <span class="badge">${isCurrent ? words.inCurrent : words.committed}</span>
        ${isApplied ? html`<span class="badge good">${words.appliedHere}</span>` : html`<span class="badge warning">${words.notApplied}</span>`}
      </summary>
      <div class="stack">
        <p class="quiet mono">${file}</p>
        <${CodeBlock} text=${sql} label=${words.sqlOf(name)} wrap />
      </div>
    </details>
  `;
}

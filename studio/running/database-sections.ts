import { useState } from "preact/hooks";
import type { RunningSession, RunningState } from "#operations/admin-types";
import { Button } from "../components/button.ts";
import { Dialog } from "../components/dialog.ts";
import { Notice } from "../components/notice.ts";
import { PlainTable, Section } from "../components/plain-table.ts";
import { showToast } from "../components/toast.ts";
import { type Children, html } from "../html.ts";
import { formatDuration, formatNumber } from "../texts/format.ts";
import { texts } from "../texts.ts";
import { buildLockTree, type LockNode } from "./lock-tree.ts";
import { cancelStatement } from "./running-api.ts";

type DatabaseProps = { readonly state: RunningState; readonly onChange: () => void };

/** Locks, statements and connections. */
export function DatabaseSections({ state, onChange }: DatabaseProps) {
  const [chosen, setChosen] = useState<RunningSession | null>(null);
  const { sessions, sees_all: seesAll } = state.database;
  const locks = buildLockTree(sessions);
  const statements = sessions.filter((session) => session.state === "active" && session.waits_for.length === 0);
  const idle = sessions.filter((session) => session.state.startsWith("idle in transaction"));
  return html`
    ${!seesAll && html`<${Notice} kind="warning">${texts.running.notAllSeen}<//>`}
    <${Section} title=${texts.running.locks} count=${locks.length} empty=${texts.running.noLocks}>
      <${LockList} nodes=${locks} onCancel=${setChosen} />
    <//>
    <${Section} title=${texts.running.statements} count=${statements.length} empty=${texts.running.noStatements}>
      <${SessionTable} label=${texts.running.statements} sessions=${statements} onCancel=${setChosen} />
    <//>
    <${Section} title=${texts.running.idleInTransaction} count=${idle.length} empty=${texts.running.noIdleInTransaction}>
      <${SessionTable} label=${texts.running.idleInTransaction} sessions=${idle} />
    <//>
    <${SlowStatements} state=${state} />
    <${Connections} state=${state} />
    ${
      chosen &&
      html`<${CancelDialog} session=${chosen} onClose=${() => setChosen(null)} onDone=${() => {
        setChosen(null);
        onChange();
      }} />`
    }
  `;
}

/** The text of a statement; a long one scrolls. */
function StatementText({ text }: { readonly text: string | null }) {
  return html`<code class="statement" tabindex="0">${text?.trim() ?? texts.running.hidden}</code>`;
}

type LockListProps = {
  readonly nodes: readonly LockNode[];
  readonly onCancel: (session: RunningSession) => void;
};

function LockList({ nodes, onCancel }: LockListProps): Children {
  return html`
    <ul class="plain-list lock-tree">
      ${nodes.map(
        ({ pid, session, waiters }) => html`
          <li key=${pid}>
            <${LockLine} pid=${pid} session=${session} waiters=${waiters.length} onCancel=${onCancel} />
            ${waiters.length > 0 && html`<${LockList} nodes=${waiters} onCancel=${onCancel} />`}
          </li>
        `,
      )}
    </ul>
  `;
}

type LockLineProps = {
  readonly pid: number;
  readonly session: RunningSession | null;
  readonly waiters: number;
  readonly onCancel: (session: RunningSession) => void;
};

function LockLine({ pid, session, waiters, onCancel }: LockLineProps) {
  if (!session) return html`<p>${texts.running.preparedTransaction(pid)}</p>`;
  const { application, lock, milliseconds, transaction_ms: transaction, state, statement } = session;
  const isWaiting = session.waits_for.length > 0;
  const duration = formatDuration((isWaiting ? milliseconds : transaction) ?? 0);
  const what = lock && [lock.mode, lock.relation ?? lock.type].join(" · ");
  return html`
    <div class="lock-line">
      <div class="row">
        <strong>${pid}</strong>
        <span>${application}</span>
        ${
          isWaiting
            ? html`<span class="badge warning">${texts.running.waitsSince(duration)}</span><span class="quiet">${what}</span>`
            : html`<span class="badge">${state}</span><span class="quiet">${texts.running.transactionSince(duration)}</span>`
        }
        ${waiters > 0 && html`<span class="badge danger">${texts.running.blocks(waiters)}</span>`}
        ${
          state === "active" &&
          html`<${Button} size="small" onClick=${() => onCancel(session)}>${texts.running.cancel}<span class="visually-hidden"> ${pid}</span><//>`
        }
      </div>
      <${StatementText} text=${statement} />
    </div>
  `;
}

type SessionTableProps = {
  readonly label: string;
  readonly sessions: readonly RunningSession[];
  readonly onCancel?: (session: RunningSession) => void;
};

function SessionTable({ label, sessions, onCancel }: SessionTableProps) {
  const { pid, application, caller, duration, statement } = texts.running.columns;
  const heads = [pid, application, caller, duration, statement, ...(onCancel ? [texts.running.cancel] : [])];
  const rows = sessions.map((session) => {
    const { request } = session;
    const time = onCancel ? session.milliseconds : session.transaction_ms;
    return {
      key: String(session.pid),
      cells: [
        session.pid,
        session.application,
        [request?.role ?? session.role, request?.interface].filter(Boolean).join(" · "),
        formatDuration(time ?? 0),
        html`<${StatementText} text=${session.statement} />`,
        ...(onCancel
          ? [
              html`<${Button} size="small" onClick=${() => onCancel(session)}>
                ${texts.running.cancel}<span class="visually-hidden"> ${session.pid}</span>
              <//>`,
            ]
          : []),
      ],
    };
  });
  return html`<${PlainTable} label=${label} heads=${heads} rows=${rows} />`;
}

function SlowStatements({ state }: { readonly state: RunningState }) {
  const { slow_statements: slow } = state;
  const { statement, role, calls, total, mean, max } = texts.running.columns;
  const rows = slow.statements.map((each, index) => ({
    key: String(index),
    cells: [
      html`<${StatementText} text=${each.statement} />`,
      each.role ?? "",
      formatNumber(each.calls),
      formatDuration(each.total_ms),
      formatDuration(each.mean_ms),
      formatDuration(each.max_ms),
    ],
  }));
  const note = slow.source === "service" ? texts.running.fromService(slow.least_ms) : texts.running.fromExtension;
  return html`
    <${Section} title=${texts.running.slowStatements} count=${rows.length} empty=${texts.running.noSlowStatements}>
      <${PlainTable} label=${texts.running.slowStatements} heads=${[statement, role, calls, total, mean, max]} rows=${rows} />
    <//>
    <p class="quiet note">${note}</p>
  `;
}

function Connections({ state }: { readonly state: RunningState }) {
  const { connections, max_connections: max } = state.database;
  const { application, state: stateHead, count, pool, open, busy, waiting } = texts.running.columns;
  const rows = connections.map((each) => ({
    key: `${each.application} ${each.state}`,
    cells: [each.application, each.state ?? texts.running.server, each.count],
  }));
  const pools = state.pools.map((each) => ({
    key: each.name,
    cells: [each.name, `${each.connections} / ${each.max}`, each.in_flight, each.waiting],
  }));
  return html`
    <${Section} title=${texts.running.connectionsOf(max)} count=${rows.length} empty="">
      <div class="columns">
        <${PlainTable} label=${texts.running.connections} heads=${[application, stateHead, count]} rows=${rows} />
        <${PlainTable} label=${texts.running.pools} heads=${[pool, open, busy, waiting]} rows=${pools} />
      </div>
    <//>
  `;
}

type CancelDialogProps = {
  readonly session: RunningSession;
  readonly onClose: () => void;
  readonly onDone: () => void;
};

function CancelDialog({ session, onClose, onDone }: CancelDialogProps) {
  const [error, setError] = useState<Error | null>(null);
  const [isBusy, setBusy] = useState(false);
  const cancel = async () => {
    setBusy(true);
    try {
      await cancelStatement(session);
      showToast({ text: texts.running.cancelled(session.pid) });
      onDone();
    } catch (failure) {
      setError(failure as Error);
      setBusy(false);
    }
  };
  const actions = html`
    <${Button} onClick=${onClose}>${texts.components.close}<//>
    <${Button} kind="danger" busy=${isBusy} onClick=${cancel}>${texts.running.cancelStatement}<//>
  `;
  return html`
    <${Dialog} title=${texts.running.cancelTitle(session.pid)} onClose=${onClose} actions=${actions}>
      <p>${texts.running.cancelExplained}</p>
      <${StatementText} text=${session.statement} />
      ${error && html`<${Notice} kind="error" error=${error} />`}
    <//>
  `;
}

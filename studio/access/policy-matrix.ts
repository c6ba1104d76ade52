import { useEffect, useRef, useState } from "preact/hooks";
import type { MatrixPage, TriedCaller, TriedOutcome, TriedTable } from "#operations/admin-types";
import { shortName } from "../api/catalog.ts";
import { isAborted } from "../api/client.ts";
import { Button } from "../components/button.ts";
import { Dialog } from "../components/dialog.ts";
import { TextField } from "../components/field.ts";
import { Notice } from "../components/notice.ts";
import { type FoundUser, UserSearch, userName } from "../components/user-search.ts";
import { html } from "../html.ts";
import { formatCount } from "../texts/format.ts";
import { texts } from "../texts.ts";
import { readMatrixPage } from "./access-api.ts";
import { type ChosenCell, OutcomeDialog } from "./outcome-dialog.ts";

type Matrix = Pick<MatrixPage, "callers" | "table_count"> & { readonly tables: readonly TriedTable[] };

const words = texts.access.matrix;

/** The outcome of each command on each table for each role, from real trials. */
export function PolicyMatrix() {
  const [users, setUsers] = useState<readonly FoundUser[]>([]);
  const { matrix, error, isRunning, run, stop } = useMatrix();
  const [cell, setCell] = useState<ChosenCell | null>(null);
  const [isChoosing, setChoosing] = useState(false);
  const chooseUser = (user: FoundUser) => {
    setChoosing(false);
    setUsers([...users.filter(({ id }) => id !== user.id), user]);
  };
  return html`
    <p>${words.intro}</p>
    <div class="row">
      <${Button} kind="primary" icon="play" busy=${isRunning} onClick=${() => run(users.map(({ id }) => id))}>${words.run}<//>
      ${isRunning && html`<${Button} onClick=${stop}>${words.stop}<//>`}
      <${Button} icon="plus" disabled=${isRunning} onClick=${() => setChoosing(true)}>${words.addUser}<//>
      ${users.map((user) => html`<span key=${user.id} class="badge">${userName(user)}</span>`)}
    </div>
    ${error && html`<${Notice} kind="error" error=${error} />`}
    ${(matrix || isRunning) && html`<${MatrixProgress} matrix=${matrix} isRunning=${isRunning} />`}
    ${matrix && html`<${MatrixTable} matrix=${matrix} onChoose=${setCell} />`}
    ${cell && html`<${OutcomeDialog} cell=${cell} onClose=${() => setCell(null)} />`}
    ${
      isChoosing &&
      html`<${Dialog} title=${words.addUser} onClose=${() => setChoosing(false)}><${UserSearch} onChoose=${chooseUser} /><//>`
    }
  `;
}

function MatrixProgress({ matrix, isRunning }: { readonly matrix: Matrix | null; readonly isRunning: boolean }) {
  const text = matrix ? words.progress(matrix.tables.length, matrix.table_count) : words.started;
  return html`
    <div class="row">
      ${isRunning && html`<progress max=${matrix?.table_count} value=${matrix?.tables.length} aria-label=${words.run}></progress>`}
      <p role="status" class="quiet">${text}</p>
    </div>
  `;
}

/** Loads the tables page by page; leaving the tab cancels the running request. */
function useMatrix() {
  const [matrix, setMatrix] = useState<Matrix | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [isRunning, setRunning] = useState(false);
  const controller = useRef<AbortController | null>(null);
  const stop = () => controller.current?.abort();
  useEffect(() => stop, []);

  const run = async (users: readonly string[]) => {
    controller.current = new AbortController();
    setRunning(true);
    setError(null);
    setMatrix(null);
    try {
      let tables: readonly TriedTable[] = [];
      let after: string | null = null;
      do {
        const page: MatrixPage = await readMatrixPage({ users, after }, controller.current.signal);
        tables = [...tables, ...page.tables];
        setMatrix({ ...page, tables });
        after = page.next;
      } while (after !== null);
    } catch (failure) {
      if (!isAborted(failure)) setError(failure as Error);
    } finally {
      setRunning(false);
    }
  };
  return { matrix, error, isRunning, run, stop };
}

type MatrixTableProps = { readonly matrix: Matrix; readonly onChoose: (cell: ChosenCell) => void };

function MatrixTable({ matrix: { callers, tables }, onChoose }: MatrixTableProps) {
  const [search, setSearch] = useState("");
  const wanted = search.trim().toLowerCase();
  const found = tables.filter((table) => shortName(table).toLowerCase().includes(wanted));
  return html`
    <${TextField} label=${words.search} hideLabel type="search" placeholder=${words.search} value=${search} onInput=${setSearch} />
    ${found.length === 0 && html`<p class="quiet">${words.noneFound}</p>`}
    <div class="access-matrix-view" tabindex="0" role="group" aria-label=${texts.access.tabs.policies}>
      <table class="plain-table access-matrix">
        <thead>
          <tr>
            <th scope="col">${words.table}</th>
            <th scope="col">${words.command}</th>
            ${callers.map((caller) => html`<th key=${callerName(caller)} scope="col">${callerName(caller)}</th>`)}
          </tr>
        </thead>
        ${found.map((table) => html`<${TableRows} key=${`${table.schema}.${table.name}`} table=${table} callers=${callers} onChoose=${onChoose} />`)}
      </table>
    </div>
  `;
}

type TableRowsProps = {
  readonly table: TriedTable;
  readonly callers: readonly TriedCaller[];
  readonly onChoose: (cell: ChosenCell) => void;
};

function TableRows({ table, callers, onChoose }: TableRowsProps) {
  const { name, commands, total } = table;
  return html`
    <tbody>
      ${commands.map(
        ({ command, results }, at) => html`
          <tr key=${command}>
            ${at === 0 && html`<th scope="rowgroup" rowspan=${commands.length}>${shortName(table)}</th>`}
            <th scope="row">${command}</th>
            ${results.map((outcome, index) => {
              const caller = callers[index]!;
              return html`
                <td key=${callerName(caller)}>
                  <button
                    type="button"
                    class=${`access-outcome ${verdictOf(outcome, { command, role: caller.role, total })}`}
                    aria-label=${words.cell(callerName(caller), command, name, outcomeText(outcome, total))}
                    onClick=${() => onChoose({ table, command, caller, outcome })}
                  >
                    ${outcomeText(outcome, total)}
                  </button>
                </td>
              `;
            })}
          </tr>
        `,
      )}
    </tbody>
  `;
}

function callerName({ role, user, name }: TriedCaller): string {
  return user === null ? role : (name ?? user);
}

type TriedCommand = { readonly command: string; readonly role: string; readonly total: number | null };

/** Returns the class of an outcome. Colours are for what is allowed, and for what surprises: changes by anybody, and failures. */
function verdictOf(
  { kind, count = 0 }: TriedOutcome,
  { command, role, total }: TriedCommand,
): "all" | "some" | "none" | "open" | "failed" {
  if (kind === "failed") return "failed";
  if (kind === "denied" || (kind === "rows" && count === 0)) return "none";
  if (role === "anon" && command !== "select") return "open";
  return kind === "allowed" || count === total ? "all" : "some";
}

function outcomeText({ kind, count = 0, code = "" }: TriedOutcome, total: number | null): string {
  switch (kind) {
    case "denied":
      return words.denied;
    case "allowed":
      return words.allowed;
    case "failed":
      return words.failures[code] ?? words.failed(code);
    case "rows":
      if (total === 0) return words.noRows;
      if (total === null) return formatCount(count);
      return count === total ? words.all(count) : words.part(count, total);
  }
}

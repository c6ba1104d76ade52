import type { DryRunResult, ObjectChange } from "#operations/admin-types";
import { Notice } from "../../components/notice.ts";
import { html } from "../../html.ts";
import { texts } from "../../texts.ts";

const words = texts.schemaForms;

/** The result of a dry run: the changed objects, the locks, and warnings. */
export function DryRunReport({ run }: { readonly run: DryRunResult }) {
  const { tried, statements, changes, locks, warnings, milliseconds, visible } = run;
  if (!tried) return html`<${Notice} kind="info">${words.notTried}<//>${statements.map(verdictNotice)}`;
  return html`
    <section class="dry-run" aria-label=${words.dryRunResult} role="status">
      <h3>${words.dryRunDone(milliseconds)}</h3>
      ${statements.map(verdictNotice)}
      ${warnings.map((warning) => html`<${Notice} key=${warning} kind="warning">${warning}<//>`)}
      ${changes.length === 0 ? html`<p class="quiet">${words.noChanges}</p>` : html`<ul class="changes">${changes.map(changeItem)}</ul>`}
      ${
        locks.length > 0 &&
        html`
          <h3>${words.locks}</h3>
          <ul>
            ${locks.map(({ table, mode, blocks, rows }) => html`<li key=${table}>${words.lock(table, mode, blocks, rows)}</li>`)}
          </ul>
        `
      }
      ${visible.length > 0 && visibleRows(visible)}
    </section>
  `;
}

function verdictNotice({ line, verdict, safeForm }: DryRunResult["statements"][number]) {
  return safeForm !== null && html`<${Notice} kind="warning" title=${words.verdict(line, verdict)}>${safeForm}<//>`;
}

function visibleRows(visible: DryRunResult["visible"]) {
  const count = (rows: number | null) => (rows === null ? words.noRows : rows);
  return html`
    <table class="plain-table">
      <caption>${words.visibleRows}</caption>
      <thead>
        <tr>
          <th scope="col">${words.role}</th>
          <th scope="col">${words.before}</th>
          <th scope="col">${words.afterwards}</th>
        </tr>
      </thead>
      <tbody>
        ${visible.map(
          ({ role, before, after }) => html`
            <tr key=${role}>
              <th scope="row">${role}</th>
              <td>${count(before)}</td>
              <td class=${before === after ? "" : "changed-count"}>${count(after)}</td>
            </tr>
          `,
        )}
      </tbody>
    </table>
  `;
}

function changeItem({ object, change, added, removed }: ObjectChange) {
  return html`
    <li key=${object}>
      <details>
        <summary>
          <span class=${`badge ${BADGES[change]}`}>${words.changes[change]}</span> <span class="mono">${object}</span>
        </summary>
        <pre class="change-parts">${[...removed.map((part) => `- ${part}`), ...added.map((part) => `+ ${part}`)].join("\n")}</pre>
      </details>
    </li>
  `;
}

const BADGES = { created: "good", changed: "warning", dropped: "danger" } as const;

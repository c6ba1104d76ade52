import type {
  AffectedRequest,
  ChangeLevel,
  ComparisonOfCopy,
  ContractChange,
  MigrationsState,
} from "#operations/admin-types";
import { CopyButton } from "../components/code-block.ts";
import { Empty } from "../components/page.ts";
import { Section } from "../components/plain-table.ts";
import { Select } from "../components/select.ts";
import { html } from "../html.ts";
import { useSearchParameter } from "../router.ts";
import { texts } from "../texts.ts";
import { LEVELS, SURFACES } from "./changes-api.ts";
import { CopyTask, RefusalNotice } from "./copy-task.ts";
import type { Task } from "./use-task.ts";

const words = texts.changes.interfaces;
const BADGES: Readonly<Record<ChangeLevel, string>> = { compatible: "good", dangerous: "warning", breaking: "danger" };

type InterfacesTabProps = { readonly list: MigrationsState; readonly task: Task<ComparisonOfCopy> };

/** The changes for clients that the pending migrations make. */
export function InterfacesTab({ list: { refusal, commands }, task }: InterfacesTabProps) {
  const { result } = task;
  return html`
    <p>${words.intro}</p>
    <${RefusalNotice} refusal=${refusal} command=${commands.diff} />
    <${CopyTask} task=${task} action=${words.run} progress=${words.progress} isRefused=${refusal !== null} onRun=${() => task.run()}>
      ${result?.error === null && html`<${Changes} changes=${result.changes} markdown=${result.markdown} />`}
    <//>
  `;
}

type ChangesProps = { readonly changes: readonly ContractChange[]; readonly markdown: string };

function Changes({ changes, markdown }: ChangesProps) {
  const [chosen, setChosen] = useSearchParameter("level");
  const least = LEVELS.find((level) => level === chosen) ?? LEVELS[0];
  const shown = changes.filter(({ level }) => LEVELS.indexOf(level) >= LEVELS.indexOf(least));
  if (changes.length === 0) return html`<${Empty}>${words.none}<//>`;
  const counts = LEVELS.toReversed().map((level) => ({
    level,
    count: changes.filter((change) => change.level === level).length,
  }));
  return html`
    <div class="row">
      <p role="status">${words.summary(counts)}</p>
      <div class="page-actions"><${CopyButton} text=${markdown} label=${words.copyMarkdown} /></div>
      <${Select}
        label=${words.least}
        hideLabel
        value=${least}
        options=${LEVELS.map((level) => ({ value: level, label: words.levels[level] }))}
        onChange=${(level: string) => setChosen(level === LEVELS[0] ? null : level)}
      />
    </div>
    ${shown.length === 0 && html`<${Empty}>${words.noneOfLevel}<//>`}
    ${SURFACES.map((surface) => {
      const ofSurface = shown.filter((change) => change.surface === surface);
      return ofSurface.length > 0 && html`<${SurfaceChanges} key=${surface} surface=${surface} changes=${ofSurface} />`;
    })}
  `;
}

type SurfaceChangesProps = {
  readonly surface: ContractChange["surface"];
  readonly changes: readonly ContractChange[];
};

function SurfaceChanges({ surface, changes }: SurfaceChangesProps) {
  return html`
    <${Section} title=${words.surfaces[surface]} count=${changes.length} empty="">
      <ul class="changes-list">
        ${changes.map(
          ({ level, object, message, requests }, index) => html`
            <li key=${index}>
              <span class=${`badge ${BADGES[level]}`}>${level}</span> <code>${object}</code>: ${message}
              ${requests && html`<${AffectedRequests} requests=${requests} />`}
            </li>
          `,
        )}
      </ul>
    <//>
  `;
}

function AffectedRequests({ requests }: { readonly requests: readonly AffectedRequest[] }) {
  if (requests.length === 0) return html`<p>${words.unused}</p>`;
  return html`
    <details>
      <summary>${words.used(requests.length)}</summary>
      <ul>
        ${requests.map(
          ({ request, role, requests: count, refusal }, index) =>
            html`<li key=${index}><code>${request}</code> ${words.affected(role, count, refusal)}</li>`,
        )}
      </ul>
    </details>
  `;
}

import { useState } from "preact/hooks";
import type { TableRow } from "../../api/rest-query.ts";
import { useLoaded } from "../../api/use-loaded.ts";
import { Button } from "../../components/button.ts";
import { Dialog } from "../../components/dialog.ts";
import { Notice } from "../../components/notice.ts";
import { Loading } from "../../components/page.ts";
import { html } from "../../html.ts";
import { texts } from "../../texts.ts";
import { type CascadeStep, countAffected, isRestricted } from "./cascade.ts";
import { isForbidden } from "./row-changes.ts";

type DeleteDialogProps = {
  readonly table: string;
  readonly rows: readonly TableRow[];
  /** The page that explains why privileges and policies refuse the delete. */
  readonly why: string;
  readonly findCascade: () => Promise<readonly CascadeStep[]>;
  /** Deletes the rows. `alsoChanged` counts rows of other tables that are deleted or changed together with these. */
  readonly onDelete: (alsoChanged: number) => Promise<void>;
  readonly onClose: () => void;
};

/** Shows before the delete its effect on rows that refer to the deleted ones. */
export function DeleteDialog({ table, rows, why, findCascade, onDelete, onClose }: DeleteDialogProps) {
  const cascade = useLoaded(findCascade, []);
  const [error, setError] = useState<Error | null>(null);
  const [isDeleting, setDeleting] = useState(false);
  const steps = cascade.value ?? [];
  const confirm = async () => {
    setDeleting(true);
    setError(null);
    await onDelete(countAffected(steps)).catch(setError);
    setDeleting(false);
  };
  const actions = html`
    <${Button} onClick=${onClose}>${texts.components.cancel}<//>
    <${Button} kind="danger" busy=${isDeleting} disabled=${cascade.isLoading} onClick=${confirm}>${texts.editing.delete}<//>
  `;
  return html`
    <${Dialog} title=${texts.editing.deleteTitle(rows.length, table)} onClose=${onClose} actions=${actions}>
      ${cascade.isLoading && html`<${Loading} text=${texts.editing.counting} />`}
      ${cascade.error && html`<${Notice} kind="error" error=${cascade.error} onRetry=${cascade.reload} />`}
      ${cascade.value && steps.length === 0 && html`<p>${texts.editing.nothingRefers}</p>`}
      ${steps.length > 0 && html`<p>${texts.editing.concerned}</p><${CascadeList} steps=${steps} />`}
      ${isRestricted(steps) && html`<${Notice} kind="warning">${texts.editing.restricted}<//>`}
      ${error && html`<${Notice} kind="error" error=${error}>${isForbidden(error) && html`<a href=${why}>${texts.editing.why}</a>`}<//>`}
    <//>
  `;
}

type CascadeListProps = {
  readonly steps: readonly CascadeStep[];
  /** True if the steps come from a part of the rows. */
  readonly isPartial?: boolean;
};

function CascadeList({ steps, isPartial = false }: CascadeListProps) {
  return html`
    <ul class="editing-cascade">
      ${steps.map(
        (step) => html`
          <li key=${`${step.table.schema}.${step.table.name}.${step.foreignKey.name}`} data-action=${step.action}>
            ${stepText(step, isPartial)}
            ${step.steps.length > 0 && html`<${CascadeList} steps=${step.steps} isPartial=${isPartial || step.isPartial} />`}
          </li>
        `,
      )}
    </ul>
  `;
}

function stepText({ table, foreignKey, action, count }: CascadeStep, isPartial: boolean): string {
  const { rows, rowsAtLeast, rowsUnknown, cascades } = texts.editing;
  const counted = count === null ? rowsUnknown : isPartial ? rowsAtLeast(count) : rows(count);
  const name = table.schema === "public" ? table.name : `${table.schema}.${table.name}`;
  return cascades[action](counted, name, foreignKey.columns.join(", "));
}

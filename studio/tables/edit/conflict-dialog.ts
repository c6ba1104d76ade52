import type { TableRow } from "../../api/rest-query.ts";
import { Button } from "../../components/button.ts";
import { Dialog } from "../../components/dialog.ts";
import { html } from "../../html.ts";
import { texts } from "../../texts.ts";
import { comparedValue } from "./compared-value.ts";
import type { RowValues } from "./row-requests.ts";

export type ConflictDialogProps = {
  readonly columns: readonly string[];
  readonly before: TableRow;
  readonly theirs: TableRow;
  readonly yours: RowValues;
  readonly onKeepYours: () => void;
  readonly onTakeTheirs: () => void;
};

/** A row that somebody else has changed meanwhile, with all three values of each column. */
export function ConflictDialog({ columns, before, theirs, yours, onKeepYours, onTakeTheirs }: ConflictDialogProps) {
  const actions = html`
    <${Button} onClick=${onTakeTheirs}>${texts.editing.takeTheirs}<//>
    <${Button} kind="primary" onClick=${onKeepYours}>${texts.editing.keepYours}<//>
  `;
  return html`
    <${Dialog} title=${texts.editing.conflictTitle} size="wide" onClose=${onTakeTheirs} actions=${actions}>
      <p>${texts.editing.conflictIntro}</p>
      <div class="scroll-x">
        <table class="plain-table">
          <thead>
            <tr>
              <th scope="col">${texts.transfer.columns}</th>
              <th scope="col">${texts.editing.shown}</th>
              <th scope="col">${texts.editing.theirs}</th>
              <th scope="col">${texts.editing.yours}</th>
            </tr>
          </thead>
          <tbody>
            ${columns.map(
              (name) => html`
                <tr key=${name}>
                  <th scope="row">${name}</th>
                  <td class="editing-compared">${comparedValue(before[name])}</td>
                  <td class="editing-compared">${comparedValue(theirs[name])}</td>
                  <td class="editing-compared">${comparedValue(yours[name])}</td>
                </tr>
              `,
            )}
          </tbody>
        </table>
      </div>
    <//>
  `;
}

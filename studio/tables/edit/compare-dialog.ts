import type { TableRow } from "../../api/rest-query.ts";
import { Dialog } from "../../components/dialog.ts";
import { html } from "../../html.ts";
import { texts } from "../../texts.ts";
import { comparedValue } from "./compared-value.ts";

export type CompareDialogProps = {
  readonly table: string;
  readonly columns: readonly string[];
  readonly rows: readonly [TableRow, TableRow];
  readonly onClose: () => void;
};

/** Two rows side by side, in which the columns that differ are marked. */
export function CompareDialog({ table, columns, rows: [one, other], onClose }: CompareDialogProps) {
  const differs = (name: string) => (one[name] ?? null) !== (other[name] ?? null);
  return html`
    <${Dialog} title=${texts.editing.compareTitle(table)} size="wide" onClose=${onClose}>
      <p>${texts.editing.differing(columns.filter(differs).length, columns.length)}</p>
      <div class="scroll-x" tabindex="0" role="region" aria-label=${texts.editing.compareTitle(table)}>
        <table class="plain-table">
          <thead>
            <tr>
              <th scope="col">${texts.transfer.columns}</th>
              <th scope="col">${texts.editing.firstRow}</th>
              <th scope="col">${texts.editing.secondRow}</th>
            </tr>
          </thead>
          <tbody>
            ${columns.map(
              (name) => html`
                <tr key=${name} class=${differs(name) ? "editing-differs" : ""}>
                  <th scope="row">${name} ${differs(name) && html`<span class="badge">${texts.editing.differs}</span>`}</th>
                  <td class="editing-compared">${comparedValue(one[name])}</td>
                  <td class="editing-compared">${comparedValue(other[name])}</td>
                </tr>
              `,
            )}
          </tbody>
        </table>
      </div>
    <//>
  `;
}

import { html } from "../../html.ts";
import { texts } from "../../texts.ts";

type Values = { readonly [column: string]: string | null | undefined };

type ComparedColumnsProps = {
  readonly label: string;
  readonly columns: readonly string[];
  /** The values of each column, by what they are called. */
  readonly versions: readonly (readonly [name: string, values: Values])[];
  /** The columns that are marked. */
  readonly differing?: ReadonlySet<string>;
};

const NONE: ReadonlySet<string> = new Set();

/** The columns of a table below each other, with several values of each side by side. */
export function ComparedColumns({ label, columns, versions, differing = NONE }: ComparedColumnsProps) {
  return html`
    <div class="scroll-x" tabindex="0" role="region" aria-label=${label}>
      <table class="plain-table">
        <thead>
          <tr>
            <th scope="col">${texts.transfer.columns}</th>
            ${versions.map(([name]) => html`<th key=${name} scope="col">${name}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${columns.map(
            (column) => html`
              <tr key=${column} class=${differing.has(column) ? "editing-differs" : ""}>
                <th scope="row">${column} ${differing.has(column) && html`<span class="badge">${texts.editing.differs}</span>`}</th>
                ${versions.map(([name, values]) => html`<td key=${name} class="editing-compared">${shownValue(values[column])}</td>`)}
              </tr>
            `,
          )}
        </tbody>
      </table>
    </div>
  `;
}

function shownValue(value: string | null | undefined) {
  if (value == null) return html`<span class="quiet">${texts.editing.isNull}</span>`;
  return value === "" ? html`<span class="quiet">${texts.editing.emptyText}</span>` : value;
}

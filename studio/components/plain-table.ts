import { type Children, html } from "../html.ts";

type SectionProps = {
  readonly title: string;
  readonly count: number;
  /** The text that is shown if there are no items. */
  readonly empty: string;
  readonly children?: Children;
};

export function Section({ title, count, empty, children }: SectionProps) {
  return html`
    <section class="stack" aria-label=${title}>
      <h2>${title}</h2>
      ${count === 0 ? html`<p class="quiet">${empty}</p>` : children}
    </section>
  `;
}

type PlainTableRow = { readonly key: string; readonly cells: readonly Children[] };

type PlainTableProps = {
  readonly label: string;
  readonly heads: readonly Children[];
  readonly rows: readonly PlainTableRow[];
  /** True if the first column names the row. */
  readonly hasRowHeads?: boolean;
};

/** A table of few rows. */
export function PlainTable({ label, heads, rows, hasRowHeads = false }: PlainTableProps) {
  return html`
    <div class="scroll-x" tabindex="0" role="group" aria-label=${label}>
      <table class="plain-table">
        <thead>
          <tr>
            ${heads.map((head, index) => html`<th key=${index} scope="col">${head}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${rows.map(
            ({ key, cells }) => html`
              <tr key=${key}>
                ${cells.map((cell, index) =>
                  hasRowHeads && index === 0
                    ? html`<th key=${index} scope="row">${cell}</th>`
                    : html`<td key=${index}>${cell}</td>`,
                )}
              </tr>
            `,
          )}
        </tbody>
      </table>
    </div>
  `;
}

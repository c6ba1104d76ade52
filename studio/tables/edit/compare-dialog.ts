import type { TableRow } from "../../api/rest-query.ts";
import { Dialog } from "../../components/dialog.ts";
import { html } from "../../html.ts";
import { texts } from "../../texts.ts";
import { ComparedColumns } from "./compared-columns.ts";

type CompareDialogProps = {
  readonly table: string;
  readonly columns: readonly string[];
  readonly rows: readonly [TableRow, TableRow];
  readonly onClose: () => void;
};

/** Two rows side by side, in which the columns that differ are marked. */
export function CompareDialog({ table, columns, rows: [one, other], onClose }: CompareDialogProps) {
  const differing = new Set(columns.filter((name) => (one[name] ?? null) !== (other[name] ?? null)));
  const title = texts.editing.compareTitle(table);
  const versions = [
    [texts.editing.firstRow, one],
    [texts.editing.secondRow, other],
  ];
  return html`
    <${Dialog} title=${title} size="wide" onClose=${onClose}>
      <p>${texts.editing.differing(differing.size, columns.length)}</p>
      <${ComparedColumns} label=${title} columns=${columns} versions=${versions} differing=${differing} />
    <//>
  `;
}

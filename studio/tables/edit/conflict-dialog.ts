import type { TableRow } from "../../api/rest-query.ts";
import { Button } from "../../components/button.ts";
import { Dialog } from "../../components/dialog.ts";
import { html } from "../../html.ts";
import { texts } from "../../texts.ts";
import { ComparedColumns } from "./compared-columns.ts";
import type { RowValues } from "./row-requests.ts";

type ConflictDialogProps = {
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
  const versions = [
    [texts.editing.shown, before],
    [texts.editing.theirs, theirs],
    [texts.editing.yours, yours],
  ];
  return html`
    <${Dialog} title=${texts.editing.conflictTitle} size="wide" onClose=${onTakeTheirs} actions=${actions}>
      <p>${texts.editing.conflictIntro}</p>
      <${ComparedColumns} label=${texts.editing.conflictTitle} columns=${columns} versions=${versions} />
    <//>
  `;
}

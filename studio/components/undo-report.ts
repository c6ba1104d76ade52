import type { UndoAssessment } from "#operations/admin-types";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import { CodeBlock } from "./code-block.ts";
import { Notice } from "./notice.ts";

const words = texts.undo;

/** The SQL that undoes a migration, or the reason why it cannot be undone. */
export function UndoReport({ undo }: { readonly undo: UndoAssessment }) {
  if (undo.verdict === "cannot be undone") {
    const { reason, statement } = undo;
    return html`
      <${Notice} kind="warning" title=${words.cannotUndo}>
        <p>${reason} ${statement && words.place(statement)}</p>
      <//>
    `;
  }
  if (undo.sql === "") return html`<p>${words.nothingToUndo}</p>`;
  return html`
    <h3>${words.canUndo}</h3>
    <${CodeBlock} text=${undo.sql} label=${words.canUndo} wrap />
    ${undo.drops.length > 0 && html`<p>${words.lostByUndo(undo.drops)}</p>`}
  `;
}

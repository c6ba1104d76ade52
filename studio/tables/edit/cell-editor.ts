import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { IconButton } from "../../components/button.ts";
import { html } from "../../html.ts";
import { texts } from "../../texts.ts";
import type { EditedColumn } from "./edited-table.ts";
import { type EditedValue, ValueInput } from "./value-input.ts";

/** The move of the active cell after a value was saved. */
export type CellMove = "stay" | "down" | "next" | "previous";

type CellEditorProps = {
  readonly column: EditedColumn;
  readonly value: string | null;
  /** The reason why the value was not saved. */
  readonly error: string | null;
  /** The page that explains the error. */
  readonly why: string | null;
  readonly isSaving: boolean;
  readonly onCommit: (value: string | null, move: CellMove) => void;
  readonly onCancel: () => void;
  readonly pickLabel: string | undefined;
  /** Shows the rows or users that the column refers to; null if it refers to none. */
  readonly onPick: ((value: string | null) => void) | null;
  readonly onEdit: () => void;
};

/** Edits a value in its cell: Enter saves, Tab saves and moves, Escape cancels, Alt+N sets NULL. */
export function CellEditor(props: CellEditorProps) {
  const { column, error, isSaving, onCommit, onCancel, onPick } = props;
  const [value, setValue] = useState<string | null>(props.value);
  const root = useRef<HTMLDivElement>(null);
  const latest = useRef({ value, isSaving });
  latest.current = { value, isSaving };
  const handleKey = (event: KeyboardEvent) => {
    const move = moveOfKey(event);
    // The editor handles its own keys, not the grid.
    event.stopPropagation();
    if (event.key === "Escape") onCancel();
    else if (move && !isSaving) onCommit(latest.current.value, move);
    else return;
    event.preventDefault();
  };
  const leave = ({ relatedTarget }: FocusEvent) => {
    if (relatedTarget instanceof Node && root.current?.contains(relatedTarget)) return;
    if (document.hasFocus() && !latest.current.isSaving && !isCovered()) onCommit(latest.current.value, "stay");
  };
  useLayoutEffect(() => setValue(props.value), [props.value]);
  useEffect(() => {
    if (error) root.current!.querySelector<HTMLElement>("input, select, textarea")?.focus({ preventScroll: true });
  }, [error]);
  const change = (next: EditedValue) => {
    setValue(next ?? null);
    props.onEdit();
  };
  const attributes = {
    "aria-label": texts.editing.valueOf(column.name),
    "aria-invalid": error ? "true" : undefined,
    "aria-describedby": error ? "editing-cell-error" : undefined,
  };
  return html`
    <div class="editing-cell" ref=${root} aria-busy=${isSaving} onKeyDown=${handleKey} onFocusOut=${leave}>
      <${ValueInput} column=${column} value=${value} onChange=${change} attributes=${attributes} isFocused />
      ${
        onPick &&
        html`<${IconButton} icon="search" size="small" label=${props.pickLabel} onClick=${() => onPick(value)} />`
      }
      ${error && html`<${CellError} error=${error} why=${props.why} />`}
    </div>
  `;
}

/** The error below the cell, or above it at the end of the grid. */
function CellError({ error, why }: Pick<CellEditorProps, "error" | "why">) {
  const element = useRef<HTMLParagraphElement>(null);
  const [isAbove, setAbove] = useState(false);
  useLayoutEffect(() => {
    const { bottom } = element.current!.getBoundingClientRect();
    const grid = element.current!.closest(".grid")?.getBoundingClientRect();
    setAbove(grid !== undefined && bottom > grid.bottom);
  }, []);
  return html`
    <p ref=${element} class=${`editing-cell-error ${isAbove ? "above" : ""}`} id="editing-cell-error" role="alert">
      ${error} ${why && html`<a href=${why}>${texts.editing.why}</a>`}
    </p>
  `;
}

function moveOfKey({ key, shiftKey, altKey }: KeyboardEvent): CellMove | null {
  if (key === "Tab") return shiftKey ? "previous" : "next";
  return key === "Enter" && !altKey ? "down" : null;
}

/** True if a dialog over the grid has taken the focus. */
function isCovered(): boolean {
  return document.querySelector("dialog[open]") !== null;
}

import { useState } from "preact/hooks";
import { findTable, shortName } from "../api/catalog.ts";
import { actingUser, sessionState } from "../api/session.ts";
import { Button } from "../components/button.ts";
import { lazy } from "../components/lazy.ts";
import { Menu } from "../components/menu.ts";
import { html } from "../html.ts";
import { useStore } from "../store.ts";
import { texts } from "../texts.ts";
import { CellEditor, type CellMove } from "./edit/cell-editor.ts";
import { columnOf } from "./edit/edited-table.ts";
import type { ReferencePickerProps } from "./edit/reference-picker.ts";
import type { ValuePicker } from "./edit/row-form.ts";
import type { RowValues } from "./edit/row-requests.ts";
import type { RowChangeRecord } from "./edit/undo.ts";
import { type Editing, toEditedTable } from "./edit/use-editing.ts";
import { identifiesUser, isCallerByDefault, refersByUuid } from "./edit/user-columns.ts";
import type { UserPickerProps } from "./edit/user-picker.ts";
import { isLong } from "./edit/value-input.ts";
import { valueKind } from "./edit/value-kind.ts";
import { GrantDialog } from "./table-errors.ts";

// The dialogs are loaded later, as the first paint of a table does not need them.
const CompareDialog = lazy(async () => (await import("./edit/compare-dialog.ts")).CompareDialog);
const ConflictDialog = lazy(async () => (await import("./edit/conflict-dialog.ts")).ConflictDialog);
const DeleteDialog = lazy(async () => (await import("./edit/delete-dialog.ts")).DeleteDialog);
const ExportDialog = lazy(async () => (await import("./transfer/export-dialog.ts")).ExportDialog);
const ImportDialog = lazy(async () => (await import("./transfer/import-dialog.ts")).ImportDialog);
const ReferencePicker = lazy(async () => (await import("./edit/reference-picker.ts")).ReferencePicker);
const UserPicker = lazy(async () => (await import("./edit/user-picker.ts")).UserPicker);
const RowForm = lazy(async () => (await import("./edit/row-form.ts")).RowForm);
const ValueDialog = lazy(async () => (await import("./edit/value-dialog.ts")).ValueDialog);

/** The actions of a table's page that change rows. */
export function EditingToolbar({ editing }: { readonly editing: Editing }) {
  const { session, state } = editing;
  const { rights } = session.context;
  const { selected, changes } = state;
  const last = changes.at(-1);
  const [one, other] = selected.size === 2 ? [...selected.values()] : [];
  return html`
    <${LiveState} editing=${editing} />
    ${
      one &&
      other &&
      html`<${Button} icon="column" onClick=${() => session.show({ kind: "compare", rows: [one, other] })}>${texts.editing.compare}<//>`
    }
    ${
      selected.size > 0 &&
      html`<${Button} kind="danger" icon="trash" onClick=${() => session.askDelete([...selected.values()])}>
        ${texts.editing.delete} ${texts.editing.rows(selected.size)}
      <//>`
    }
    <${Button} kind="quiet" class="compact" icon="undo" disabled=${!last} title=${last ? undoText(last) : texts.editing.nothingToUndo} onClick=${() => session.undo()}>
      <span>${texts.editing.undo}</span>
    <//>
    <${Menu}
      label=${`${texts.transfer.export}, ${texts.transfer.import}`}
      items=${[
        { label: texts.transfer.export, icon: "download", onSelect: () => session.show({ kind: "export" }) },
        {
          label: texts.transfer.import,
          icon: "upload",
          disabled: !rights.canInsert,
          onSelect: () => session.show({ kind: "import" }),
        },
      ]}
    />
    ${
      rights.canInsert &&
      html`<${Button} kind="primary" class="compact" icon="plus" onClick=${() => session.askInsert()}><span>${texts.editing.insertRow}</span><//>`
    }
  `;
}

function undoText(change: RowChangeRecord): string {
  if (change.kind === "update") return texts.editing.undoUpdate(change.columns.join(", "));
  return change.kind === "insert" ? texts.editing.undoInsert : texts.editing.undoDelete(change.rows.length);
}

/** Shows if changes of others appear live; if not, shows the reason. */
function LiveState({ editing: { live, session } }: { readonly editing: Editing }) {
  const { table } = session.context.changer;
  const { status, newRows } = live;
  const showNewRows = () => {
    live.forgetNewRows();
    session.refresh();
  };
  const isLive = status?.state === "joined";
  const reason = status === null ? texts.editing.notPublished(table.schema, table.name) : reasonOf(status);
  return html`
    ${
      newRows > 0 &&
      html`<span role="status">${texts.editing.newRows(newRows)} <${Button} size="small" onClick=${showNewRows}>${texts.editing.showNewRows}<//></span>`
    }
    <span class=${`badge ${isLive ? "good" : ""}`} tabindex="0" title=${isLive ? texts.editing.liveHint : reason}>
      ${isLive ? texts.editing.live : texts.editing.notLive}
      <span class="visually-hidden">${isLive ? texts.editing.liveHint : reason}</span>
    </span>
  `;
}

function reasonOf(status: NonNullable<Editing["live"]["status"]>): string {
  return "reason" in status && status.reason !== null
    ? texts.editing.notLiveReason(status.reason)
    : texts.editing.connecting;
}

type PickerState =
  | ({ readonly kind: "rows" } & Omit<ReferencePickerProps, "onClose">)
  | ({ readonly kind: "user" } & Omit<UserPickerProps, "onClose">);

/** Returns the function that opens the rows or users that a column refers to; null if it refers to none. */
function pickerOf(editing: Editing, column: string, open: (picker: PickerState | null) => void): ValuePicker | null {
  const { catalog, role, session } = editing;
  const foreignKey = session.context.changer.table.foreign_keys
    .filter(({ columns }) => columns.includes(column))
    .sort((one, other) => one.columns.length - other.columns.length)[0];
  const target = foreignKey && findTable(catalog, foreignKey.target);
  if (!foreignKey || !target?.exposed) return userPickerOf(editing, column, open);
  const table = toEditedTable(catalog, role, target);
  return {
    label: isCallerByDefault(columnOf(session.context.changer.table, column))
      ? texts.editing.pickUser(column)
      : texts.editing.pickRow(column),
    open: (onPick) =>
      open({
        kind: "rows",
        table,
        keys: foreignKey.target_columns,
        onPick: (row) => {
          open(null);
          onPick(
            Object.fromEntries(
              foreignKey.columns.map((name, at) => [name, row[foreignKey.target_columns[at]!] ?? null]),
            ),
          );
        },
      }),
  };
}

/** Accounts are not exposed, so that no foreign key leads to them, and a column need not have one. */
function userPickerOf(
  { catalog, session }: Editing,
  name: string,
  open: (picker: PickerState | null) => void,
): ValuePicker | null {
  const { table } = session.context.changer;
  const column = table.columns.find((each) => each.name === name);
  if (!column || !identifiesUser(catalog, table, column)) return null;
  return {
    label: texts.editing.pickUser(name),
    open: (onPick) =>
      open({
        kind: "user",
        column: name,
        byUuid: refersByUuid(catalog, column),
        onPick: (value, user) => {
          open(null);
          onPick({ [name]: value }, user);
        },
      }),
  };
}

/** The control in the active cell; null if no cell is edited. */
function cellEditorOf(editing: Editing, openPicker: (picker: PickerState | null) => void) {
  const { session, state } = editing;
  const { cell } = state;
  if (!cell || needsDialog(cell)) return null;
  const pick = pickerOf(editing, cell.column.name, openPicker);
  return html`<${CellEditor}
    key=${`${cell.at.row}.${cell.at.column}`}
    column=${cell.column}
    value=${cell.value}
    error=${cell.error}
    why=${cell.isForbidden ? session.whyAddress("update", [cell.row], { [cell.column.name]: cell.value }) : null}
    isSaving=${cell.isSaving}
    onCommit=${(value: string | null, move: CellMove) => session.commitCell(value, move)}
    onCancel=${() => session.cancelCell()}
    onEdit=${() => cell.error && session.failCell(null)}
    pickLabel=${pick?.label}
    onPick=${pick && (() => pick.open((values) => session.commitCell(values[cell.column.name]!, "down")))}
  />`;
}

function needsDialog({ column, value }: NonNullable<Editing["state"]["cell"]>): boolean {
  const kind = valueKind(column);
  return kind === "json" || (kind === "text" && isLong(value));
}

/** The dialogs of editing, and the control in the active cell. */
export function useEditingView(editing: Editing) {
  const [picker, setPicker] = useState<PickerState | null>(null);
  const { session, state } = editing;
  const closePicker = () => {
    setPicker(null);
    session.cancelCell();
  };
  const dialogs = html`
    <${LongValue} editing=${editing} />
    <${OpenDialog} editing=${editing} openPicker=${setPicker} />
    ${picker?.kind === "rows" && html`<${ReferencePicker} ...${picker} onClose=${closePicker} />`}
    ${picker?.kind === "user" && html`<${UserPicker} ...${picker} onClose=${closePicker} />`}
    ${
      state.conflict &&
      html`<${ConflictDialog} ...${state.conflict} onKeepYours=${() => session.keepYours()} onTakeTheirs=${() => session.takeTheirs()} />`
    }
  `;
  return { editor: cellEditorOf(editing, setPicker), dialogs };
}

function LongValue({ editing: { session, state } }: { readonly editing: Editing }) {
  const { cell } = state;
  if (!cell || !needsDialog(cell)) return null;
  return html`<${ValueDialog}
    column=${cell.column}
    value=${cell.row[cell.column.name] ?? null}
    error=${cell.error}
    isSaving=${cell.isSaving}
    onCommit=${(value: string | null) => session.commitCell(value, "stay")}
    onCancel=${() => session.cancelCell()}
  />`;
}

type OpenDialogProps = { readonly editing: Editing; readonly openPicker: (picker: PickerState | null) => void };

function OpenDialog({ editing, openPicker }: OpenDialogProps) {
  const { session, state } = editing;
  const { dialog } = state;
  const { changer, rights } = session.context;
  const user = actingUser(useStore(sessionState));
  const close = () => session.show(null);
  if (dialog === null) return null;
  if (dialog.kind === "form") {
    return html`<${RowForm}
      table=${changer.table}
      row=${dialog.row}
      canWrite=${(column: string) => rights.canWrite(column, dialog.row ? "update" : "insert")}
      actingUser=${user}
      pickerOf=${(column: string) => pickerOf(editing, column, openPicker)}
      whyAddress=${(values: RowValues) => (dialog.row ? session.whyAddress("update", [dialog.row], values) : session.whyAddress("insert", [], values))}
      onSave=${(values: RowValues) => session.saveForm(dialog.row, values)}
      onClose=${close}
    />`;
  }
  if (dialog.kind === "delete") {
    const { rows } = dialog;
    return html`<${DeleteDialog}
      table=${shortName(changer.table)}
      rows=${rows}
      why=${session.whyAddress("delete", rows)}
      findCascade=${() => session.findCascade(rows)}
      onDelete=${(alsoChanged: number) => session.deleteRows(rows, alsoChanged)}
      onClose=${close}
    />`;
  }
  if (dialog.kind === "compare") {
    const columns = changer.table.columns.map(({ name }) => name);
    return html`<${CompareDialog} table=${shortName(changer.table)} columns=${columns} rows=${dialog.rows} onClose=${close} />`;
  }
  if (dialog.kind === "grant")
    return html`<${GrantDialog} table=${changer.table.name} sql=${dialog.sql} onClose=${close} onGranted=${editing.onGranted} />`;
  if (dialog.kind === "export") return html`<${ExportDialog} context=${session.context} onClose=${close} />`;
  return html`<${ImportDialog} changer=${changer} rights=${rights} onDone=${() => session.refresh()} onClose=${close} />`;
}

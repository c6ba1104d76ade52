import { useRef, useState } from "preact/hooks";
import { emptyNamedValues, valueNamed } from "../../api/named-values.ts";
import type { TableRow } from "../../api/rest-query.ts";
import { Button, IconButton } from "../../components/button.ts";
import { Dialog } from "../../components/dialog.ts";
import { Field } from "../../components/field.ts";
import { Notice } from "../../components/notice.ts";
import { html } from "../../html.ts";
import { texts } from "../../texts.ts";
import { columnOf, type EditedColumn, type EditedTable, isRequired, isWritable } from "./edited-table.ts";
import { columnsOfError, type RowError } from "./field-errors.ts";
import { isForbidden } from "./row-changes.ts";
import type { RowValues } from "./row-requests.ts";
import { isCallerByDefault } from "./user-columns.ts";
import { type EditedValue, ValueInput } from "./value-input.ts";
import { findValueProblem } from "./value-kind.ts";
import { errorText, problemText } from "./value-texts.ts";

/** Chooses one of the rows or users that a column refers to. Users come with their name. */
export type ValuePicker = {
  readonly label: string;
  readonly open: (onPick: (values: RowValues, name?: string) => void) => void;
};

type RowFormProps = {
  readonly table: EditedTable;
  /** The row; null for a new one. */
  readonly row: TableRow | null;
  readonly canWrite: (column: string) => boolean;
  /** The user whom `auth.uid()` names when the row is sent; null if it is null. */
  readonly actingUser: string | null;
  readonly pickerOf: (column: string) => ValuePicker | null;
  /** Returns the page that explains why privileges and policies refuse the values. */
  readonly whyAddress: (values: RowValues) => string;
  /** Sends the values. An error of the service is shown at its field. */
  readonly onSave: (values: RowValues) => Promise<void>;
  readonly onClose: () => void;
};

type FormErrors = { readonly byColumn: Readonly<Record<string, string>>; readonly general: Error | null };
const NO_ERRORS: FormErrors = { byColumn: {}, general: null };

/** A form with all columns of a row. For an existing row it sends only the changed values. */
export function RowForm(props: RowFormProps) {
  const { table, row, canWrite, actingUser, pickerOf, onClose } = props;
  const { values, names, errors, isSaving, form, change, save } = useRowForm(props);
  const actions = html`
    <${Button} onClick=${onClose}>${texts.components.cancel}<//>
    <${Button} kind="primary" busy=${isSaving} onClick=${save}>${row ? texts.editing.save : texts.editing.insert}<//>
  `;
  const title = row ? texts.editing.editRowOf(table.name) : texts.editing.insertInto(table.name);
  return html`
    <${Dialog} title=${title} size="drawer" onClose=${onClose} actions=${actions}>
      ${errors.general && html`<${Notice} kind="error" title=${isForbidden(errors.general) ? texts.editing.rowRefused : undefined} error=${errors.general}>${isForbidden(errors.general) && html`<a href=${props.whyAddress(changedValues(table, row, values))}>${texts.editing.why}</a>`}<//>`}
      <form class="stack" ref=${form} onSubmit=${save} novalidate>
        ${table.columns.map(
          (column) => html`
            <${RowField}
              key=${column.name}
              column=${column}
              value=${valueNamed(values, column.name)}
              isNew=${row === null}
              actingUser=${actingUser}
              pickedName=${nameOf(names, column.name, valueNamed(values, column.name))}
              isDisabled=${!isWritable(column) || !canWrite(column.name)}
              error=${valueNamed(errors.byColumn, column.name) ?? null}
              onChange=${(value: EditedValue) => change({ [column.name]: value })}
              picker=${pickerOf(column.name)}
              onPick=${change}
            />
          `,
        )}
        <button type="submit" class="visually-hidden" tabindex="-1" aria-hidden="true"></button>
      </form>
    <//>
  `;
}

/** The names of picked users, by column, with the values that they have. */
type PickedNames = Readonly<Record<string, { readonly value: EditedValue; readonly name: string }>>;

function nameOf(names: PickedNames, column: string, value: EditedValue): string | null {
  const picked = valueNamed(names, column);
  return picked && picked.value === value ? picked.name : null;
}

function useRowForm({ table, row, actingUser, onSave, onClose }: RowFormProps) {
  const [names, setNames] = useState<PickedNames>({});
  const [values, setValues] = useState<Readonly<Record<string, EditedValue>>>(row ?? {});
  const [errors, setErrors] = useState(NO_ERRORS);
  const [isSaving, setSaving] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const change = (changed: Readonly<Record<string, EditedValue>>, name?: string) => {
    setValues((before) => ({ ...before, ...changed }));
    if (name !== undefined) {
      const named = Object.entries(changed).map(([column, value]) => [column, { value, name }]);
      setNames((before) => ({ ...before, ...Object.fromEntries(named) }));
    }
    const remaining = Object.entries(errors.byColumn).filter(([name]) => !Object.hasOwn(changed, name));
    setErrors({ ...errors, byColumn: Object.fromEntries(remaining) });
  };
  const showErrors = (shown: FormErrors) => {
    setErrors(shown);
    const [first] = table.columns.filter(({ name }) => Object.hasOwn(shown.byColumn, name));
    requestAnimationFrame(() => first && controlOf(form.current!, first.name)?.focus());
  };
  const save = async (event: Event) => {
    event.preventDefault();
    const changed = changedValues(table, row, values);
    const problems = findProblems(table, row, changed, actingUser);
    if (Object.keys(problems).length > 0) return showErrors({ byColumn: problems, general: null });
    if (row && Object.keys(changed).length === 0) return onClose();
    setSaving(true);
    try {
      await onSave(changed);
    } catch (error) {
      showErrors(serviceErrors(table, changed, error as Error));
    } finally {
      setSaving(false);
    }
  };
  return { values, names, errors, isSaving, form, change, save };
}

type RowFieldProps = {
  readonly column: EditedColumn;
  readonly value: EditedValue;
  readonly isNew: boolean;
  readonly actingUser: string | null;
  /** The name of the user that was picked for the value. */
  readonly pickedName: string | null;
  readonly isDisabled: boolean;
  readonly error: string | null;
  readonly onChange: (value: EditedValue) => void;
  readonly picker: ValuePicker | null;
  readonly onPick: (values: RowValues, name?: string) => void;
};

function RowField(props: RowFieldProps) {
  const { column, value, isNew, actingUser, isDisabled, error, onChange, picker, onPick } = props;
  const { name, nullable } = column;
  const hasDefault = isNew && (column.default !== null || column.identity !== null);
  const isNeeded = isNew && needsValue(column, actingUser);
  const control = (attributes: Record<string, unknown>) => html`
    <span class="editing-field" data-column=${name}>
      <${ValueInput} column=${column} value=${value} onChange=${onChange} attributes=${{ ...attributes, "aria-required": isNeeded ? "true" : undefined }} disabled=${isDisabled} isLarge />
      ${picker && !isDisabled && html`<${IconButton} icon="search" size="small" label=${picker.label} onClick=${() => picker.open(onPick)} />`}
      ${
        nullable &&
        !isDisabled &&
        html`<${Button} size="small" kind="quiet" pressed=${value === null} title=${texts.editing.setNullOf(name)} onClick=${() => onChange(value === null ? "" : null)}>
          ${texts.editing.setNull}
        <//>`
      }
      ${
        hasDefault &&
        !isDisabled &&
        value !== undefined &&
        html`<${Button} size="small" kind="quiet" title=${texts.editing.setDefaultOf(name)} onClick=${() => onChange(undefined)}>
          ${texts.editing.useDefault}
        <//>`
      }
    </span>
  `;
  const label = html`${name} <span class="editing-type">· ${column.type}</span>${isNeeded && html` <span class="editing-required">· ${texts.editing.required}</span>`}`;
  return html`<${Field} label=${label} hint=${hintOf(props)} error=${error} control=${control} />`;
}

function hintOf({ column, isDisabled, isNew, actingUser, pickedName, value }: RowFieldProps): string | undefined {
  if (column.generated) return texts.editing.isGenerated(column.generated.expression);
  if (column.identity === "always") return texts.editing.isIdentity;
  if (pickedName !== null) return pickedName;
  if (isNew && value === undefined && isCallerByDefault(column)) return texts.editing.defaultIsCaller(actingUser);
  if (isDisabled) return texts.editing.notWritable;
  if (isNew && column.identity) return texts.editing.isIdentity;
  if (isNew && column.default !== null) return texts.editing.defaultIs(column.default);
  return column.comment ?? undefined;
}

/** True if an insert without a value for the column fails. `auth.uid()` is null if no user inserts the row. */
function needsValue(column: EditedColumn, actingUser: string | null): boolean {
  const lacksCaller = actingUser === null && isCallerByDefault(column) && !column.nullable;
  return isRequired(column) || (isWritable(column) && lacksCaller);
}

/** Returns the entered values of a new row, or the changed values of another one. */
function changedValues(
  table: EditedTable,
  row: TableRow | null,
  values: Readonly<Record<string, EditedValue>>,
): RowValues {
  const entries = table.columns
    .filter(isWritable)
    .map(({ name }) => [name, valueNamed(values, name)] as const)
    .filter(
      (entry): entry is readonly [string, string | null] => entry[1] !== undefined && entry[1] !== row?.[entry[0]],
    );
  return Object.fromEntries(entries);
}

function findProblems(
  table: EditedTable,
  row: TableRow | null,
  changed: RowValues,
  actingUser: string | null,
): Record<string, string> {
  const problems = emptyNamedValues<string>();
  for (const [name, value] of Object.entries(changed)) {
    const column = columnOf(table, name);
    const problem = value === null ? null : findValueProblem(value, column);
    if (problem) problems[name] = problemText(problem);
    else if (value === null && !column.nullable) problems[name] = texts.editing.problems.required;
  }
  for (const column of row ? [] : table.columns)
    if (needsValue(column, actingUser) && !Object.hasOwn(changed, column.name))
      problems[column.name] = isCallerByDefault(column) ? texts.editing.userRequired : texts.editing.problems.required;
  return problems;
}

function serviceErrors(table: EditedTable, changed: RowValues, error: Error): FormErrors {
  if (!("code" in error)) return { byColumn: {}, general: error };
  const rowError = error as Error & RowError;
  const columns = columnsOfError(table, rowError, changed);
  if (columns.length === 0) return { byColumn: {}, general: error };
  const text = errorText(table, rowError);
  return { byColumn: Object.fromEntries(columns.map((name) => [name, text])), general: null };
}

function controlOf(form: HTMLFormElement, column: string): HTMLElement | null {
  return form.querySelector(`[data-column="${CSS.escape(column)}"] :is(input, select, textarea)`);
}

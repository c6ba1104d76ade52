import { useLayoutEffect, useRef } from "preact/hooks";
import { IconButton } from "../../components/button.ts";
import { html } from "../../html.ts";
import { texts } from "../../texts.ts";
import type { EditedColumn } from "./edited-table.ts";
import { type ValueKind, valueKind } from "./value-kind.ts";

/** An edited value; undefined leaves it out, so that the default applies. */
export type EditedValue = string | null | undefined;

type ValueInputProps = {
  readonly column: EditedColumn;
  readonly value: EditedValue;
  readonly onChange: (value: EditedValue) => void;
  /** Attributes of the control, such as `id` and `aria-label`. */
  readonly attributes?: Readonly<Record<string, unknown>>;
  readonly isFocused?: boolean;
  readonly disabled?: boolean;
  /** True if the control shows long values in several lines. */
  readonly isLarge?: boolean;
};

/** The control for a column's type. Values are Postgres's texts: no number or time is converted. */
export function ValueInput(props: ValueInputProps) {
  const { column, value, onChange, isFocused = false, attributes = {} } = props;
  const root = useRef<HTMLSpanElement>(null);
  const kind = valueKind(column);
  // The effect runs before the next key.
  useLayoutEffect(() => {
    if (!isFocused) return;
    const control = root.current!.querySelector<HTMLInputElement>("input, select, textarea");
    // The grid has scrolled to the cell already.
    control?.focus({ preventScroll: true });
    if (control && "select" in control) control.select();
  }, []);
  const toggleNull = (event: KeyboardEvent) => {
    if (!event.altKey || event.code !== "KeyN" || !column.nullable || props.disabled) return;
    event.preventDefault();
    onChange(value === null ? "" : null);
  };
  return html`
    <span class=${`editing-value ${value === null ? "null" : ""}`} ref=${root} onKeyDown=${toggleNull}>
      ${choicesOf(column, kind) ? choice(props, choicesOf(column, kind)!, attributes) : textControl(props, kind, attributes)}
      ${isDateKind(kind) && html`<${DatePicker} ...${props} kind=${kind} />`}
    </span>
  `;
}

function choicesOf({ labels }: EditedColumn, kind: ValueKind): readonly string[] | null {
  if (kind === "boolean") return ["true", "false"];
  return kind === "enum" ? labels : null;
}

/** Values of options that are not values of the column. */
const NULL_CHOICE = "null";
const NO_CHOICE = "none";

/** Makes a choice. Its text follows a colon, so that a label can be "null". */
function choice(
  { column, value, onChange, disabled = false }: ValueInputProps,
  labels: readonly string[],
  attributes: Readonly<Record<string, unknown>>,
) {
  const read = (chosen: string): EditedValue =>
    chosen === NULL_CHOICE ? null : chosen === NO_CHOICE ? undefined : chosen.slice(1);
  const current = value === null ? NULL_CHOICE : value === undefined ? NO_CHOICE : `:${value}`;
  return html`
    <select
      ...${attributes}
      disabled=${disabled}
      value=${current}
      onChange=${({ currentTarget }: { currentTarget: HTMLSelectElement }) => onChange(read(currentTarget.value))}
    >
      ${value === undefined && html`<option value=${NO_CHOICE} selected>${texts.editing.useDefault}</option>`}
      ${labels.map((label) => html`<option key=${label} value=${`:${label}`} selected=${label === value}>${label}</option>`)}
      ${column.nullable && html`<option value=${NULL_CHOICE} selected=${value === null}>${texts.editing.isNull}</option>`}
    </select>
  `;
}

function textControl(
  { value, onChange, disabled = false, isLarge = false }: ValueInputProps,
  kind: ValueKind,
  attributes: Readonly<Record<string, unknown>>,
) {
  const common = {
    ...attributes,
    disabled,
    value: value ?? "",
    spellcheck: false,
    autocomplete: "off",
    placeholder: value === null ? texts.editing.isNull : value === "" ? texts.editing.emptyText : undefined,
    onInput: ({ currentTarget }: { currentTarget: HTMLInputElement }) => onChange(currentTarget.value),
  };
  const hasLines = isLarge && (kind === "json" || (kind === "text" && isLong(value)));
  const isCode = kind === "json" || kind === "array" || kind === "bytea";
  if (hasLines)
    return html`<textarea ...${common} rows=${kind === "json" ? 6 : 4} class=${isCode ? "mono" : ""}></textarea>`;
  const isNumber = kind === "integer" || kind === "numeric" || kind === "float";
  return html`<input ...${common} type="text" inputmode=${isNumber ? "text" : undefined} class=${isCode ? "mono" : ""} />`;
}

/** True if a text needs several lines. */
export function isLong(value: EditedValue): boolean {
  return value != null && (value.length > 60 || value.includes("\n"));
}

function isDateKind(kind: ValueKind): boolean {
  return kind === "date" || kind === "timestamp" || kind === "timestamptz";
}

/** Opens the browser's calendar, which writes the text; a timestamp with time zone is chosen in the time zone of its text. */
function DatePicker({
  column,
  value,
  onChange,
  kind,
  disabled = false,
}: ValueInputProps & { readonly kind: ValueKind }) {
  const picker = useRef<HTMLInputElement>(null);
  const [, date = "", time = "00:00:00", zone = "+00"] =
    /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d:\d\d(?:\.\d{1,3})?)\d*([+-]\d\d(?::?\d\d)?|Z)?)?$/.exec(value ?? "") ?? [];
  const choose = ({ currentTarget }: { currentTarget: HTMLInputElement }) => {
    const chosen = currentTarget.value.replace("T", " ");
    if (chosen !== "") onChange(kind === "timestamptz" ? chosen + zone : chosen);
  };
  return html`
    <input
      ref=${picker}
      class="editing-calendar"
      type=${kind === "date" ? "date" : "datetime-local"}
      step="any"
      tabindex="-1"
      aria-hidden="true"
      value=${date && (kind === "date" ? date : `${date}T${time}`)}
      onChange=${choose}
    />
    <${IconButton}
      icon="clock"
      size="small"
      disabled=${disabled}
      label=${texts.editing.pickDate(column.name)}
      onClick=${() => picker.current!.showPicker()}
    />
  `;
}

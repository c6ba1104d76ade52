import { useId } from "preact/hooks";
import { type Children, html } from "../html.ts";

export type FieldProps = {
  readonly label: Children;
  readonly hint?: Children;
  readonly error?: string | null;
  /** The label is read aloud but not shown. */
  readonly hideLabel?: boolean;
};

/** A label with its control, which gets the attributes that connect them. */
export function Field(props: FieldProps & { readonly control: (attributes: Record<string, unknown>) => Children }) {
  const id = useId();
  const { label, hint, error, hideLabel = false, control } = props;
  const hintId = hint || error ? `${id}-hint` : undefined;
  return html`
    <div class="field">
      <label for=${id} class=${hideLabel ? "visually-hidden" : ""}>${label}</label>
      ${control({ id, "aria-describedby": hintId, "aria-invalid": error ? "true" : undefined })}
      ${error ? html`<p id=${hintId} class="field-error">${error}</p>` : hint && html`<p id=${hintId} class="field-hint">${hint}</p>`}
    </div>
  `;
}

type TextFieldProps = FieldProps & {
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly type?: "text" | "search" | "password" | "number" | "email" | "date" | "time" | "datetime-local";
  readonly placeholder?: string;
  readonly required?: boolean;
  readonly disabled?: boolean;
  readonly autocomplete?: string;
  readonly autofocus?: boolean;
  readonly onKeyDown?: (event: KeyboardEvent) => void;
};

export function TextField({ label, hint, error, hideLabel, onInput, type = "text", ...input }: TextFieldProps) {
  const control = (attributes: Record<string, unknown>) => html`
    <input
      ...${input}
      ...${attributes}
      type=${type}
      spellcheck=${false}
      onInput=${({ currentTarget }: { currentTarget: HTMLInputElement }) => onInput(currentTarget.value)}
    />
  `;
  return html`<${Field} label=${label} hint=${hint} error=${error} hideLabel=${hideLabel} control=${control} />`;
}

type TextAreaProps = Omit<TextFieldProps, "type"> & { readonly rows?: number };

export function TextArea({ label, hint, error, hideLabel, onInput, ...input }: TextAreaProps) {
  const control = (attributes: Record<string, unknown>) => html`
    <textarea
      ...${input}
      ...${attributes}
      spellcheck=${false}
      onInput=${({ currentTarget }: { currentTarget: HTMLTextAreaElement }) => onInput(currentTarget.value)}
    />
  `;
  return html`<${Field} label=${label} hint=${hint} error=${error} hideLabel=${hideLabel} control=${control} />`;
}

type CheckboxProps = {
  readonly label: string;
  readonly checked: boolean;
  readonly disabled?: boolean;
  readonly hideLabel?: boolean;
  readonly onChange: (checked: boolean) => void;
};

export function Checkbox({ label, checked, disabled = false, hideLabel = false, onChange }: CheckboxProps) {
  return html`
    <label class="checkbox">
      <input
        type="checkbox"
        checked=${checked}
        disabled=${disabled}
        onChange=${({ currentTarget }: { currentTarget: HTMLInputElement }) => onChange(currentTarget.checked)}
      />
      <span class=${hideLabel ? "visually-hidden" : ""}>${label}</span>
    </label>
  `;
}

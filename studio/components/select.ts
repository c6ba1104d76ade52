import { html } from "../html.ts";
import { Field, type FieldProps } from "./field.ts";

type SelectOption = { readonly value: string; readonly label?: string; readonly disabled?: boolean };

type SelectProps = FieldProps & {
  readonly value: string;
  readonly options: readonly (SelectOption | string)[];
  readonly disabled?: boolean;
  readonly onChange: (value: string) => void;
};

export function Select({ label, hint, error, hideLabel, value, options, disabled = false, onChange }: SelectProps) {
  const choices = options.map((option) => (typeof option === "string" ? { value: option } : option));
  const control = (attributes: Record<string, unknown>) => html`
    <select
      ...${attributes}
      disabled=${disabled}
      value=${value}
      onChange=${({ currentTarget }: { currentTarget: HTMLSelectElement }) => onChange(currentTarget.value)}
    >
      ${choices.map(
        (choice: SelectOption) => html`
          <option key=${choice.value} value=${choice.value} disabled=${choice.disabled} selected=${choice.value === value}>
            ${choice.label ?? choice.value}
          </option>
        `,
      )}
    </select>
  `;
  return html`<${Field} label=${label} hint=${hint} error=${error} hideLabel=${hideLabel} control=${control} />`;
}

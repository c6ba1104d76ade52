import { type ApiError, faultsOf } from "../../../engine/errors.ts";
import { type Html, html } from "../../pages/html.ts";

export type FormField = {
  readonly name: string;
  readonly label: string;
  readonly type: "text" | "email" | "password";
  /** The autocomplete attribute, for password managers. */
  readonly autocomplete: string;
  readonly hint?: string;
};

export type HtmlForm = {
  readonly action: string;
  readonly fields: readonly FormField[];
  readonly hidden?: Readonly<Record<string, string | null>>;
  readonly button: string;
};

/** The submitted values and the error. */
export type RejectedForm = { readonly values: URLSearchParams; readonly error: ApiError };

/** Renders a form without scripts. Faults appear at their fields, also for screen readers; passwords are never sent back. */
export function renderForm({ action, fields, hidden = {}, button }: HtmlForm, refused: RejectedForm | null): Html {
  const faults = refused ? faultsOf(refused.error) : [];
  const faultOf = (name: string) => faults.flatMap((fault) => (fault.field === name ? [fault.message] : []));
  const isAtField = fields.some(({ name }) => faultOf(name).length > 0);
  const valueIn = ({ type, name }: FormField) => (type === "password" ? "" : (refused?.values.get(name) ?? ""));
  const first =
    fields.find(({ name }) => faultOf(name).length > 0) ?? fields.find((field) => valueIn(field) === "") ?? fields[0];
  const secrets = Object.entries(hidden).flatMap(([name, value]) =>
    value === null ? [] : [html`<input type="hidden" name="${name}" value="${value}">`],
  );
  return html`${refused && !isAtField ? alert(refused.error.message) : null}
    <form method="post" action="${action}">${secrets}
      ${fields.map((field) =>
        renderField(field, {
          value: valueIn(field),
          faults: faultOf(field.name),
          isFocused: field === first,
        }),
      )}
      <button type="submit">${button}</button>
    </form>`;
}

export function alert(message: string): Html {
  return html`<p class="alert" role="alert">${message}</p>`;
}

type FieldState = { readonly value: string; readonly faults: readonly string[]; readonly isFocused: boolean };

function renderField(
  { name, label, type, autocomplete, hint }: FormField,
  { value, faults, isFocused }: FieldState,
): Html {
  const isWrong = faults.length > 0;
  const described = [...(hint ? [`${name}-hint`] : []), ...(isWrong ? [`${name}-fault`] : [])].join(" ");
  const attributes = [
    ...(described === "" ? [] : [html` aria-describedby="${described}"`]),
    ...(isWrong ? [html` aria-invalid="true"`] : []),
    ...(isFocused ? [html` autofocus`] : []),
  ];
  return html`
      <div class="field">
        <label for="${name}">${label}</label>
        ${hint ? html`<p class="hint" id="${name}-hint">${hint}</p>` : null}
        ${isWrong ? html`<p class="fault" id="${name}-fault">${faults.join(" ")}</p>` : null}
        <input id="${name}" name="${name}" type="${type}" value="${value}" autocomplete="${autocomplete}"
          autocapitalize="none" spellcheck="false" required${attributes}>
      </div>`;
}

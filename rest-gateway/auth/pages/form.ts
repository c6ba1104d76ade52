import { type ApiError, faultsOf } from "../../../engine/errors.ts";
import { type Html, html } from "../../pages/html.ts";

export type FormField = {
  readonly name: string;
  readonly label: string;
  readonly type: "text" | "email" | "password";
  /** What browsers and password managers fill in by themselves. */
  readonly autocomplete: string;
  readonly hint?: string;
};

export type Form = {
  readonly action: string;
  readonly fields: readonly FormField[];
  readonly hidden?: Readonly<Record<string, string | null>>;
  readonly button: string;
};

/** What somebody has sent, and why it was refused. */
export type Refused = { readonly values: URLSearchParams; readonly error: ApiError };

/** Works without scripts. What is wrong is said at its field, to eyes and to screen readers alike; passwords are never sent back. */
export function renderForm({ action, fields, hidden = {}, button }: Form, refused: Refused | null): Html {
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

type State = { readonly value: string; readonly faults: readonly string[]; readonly isFocused: boolean };

function renderField({ name, label, type, autocomplete, hint }: FormField, { value, faults, isFocused }: State): Html {
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

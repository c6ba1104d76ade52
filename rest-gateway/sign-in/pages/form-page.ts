import type { PasswordPolicy } from "#accounts";
import {
  csrfTokenOf,
  errorHeaders,
  type GatewayHandler,
  type GatewayRequest,
  type GatewayResponse,
  type HttpError,
  toHttpError,
} from "#http";
import type { LimitedAuthDependencies, RequestSession } from "#rest-gateway/authenticate";
import { type Html, html, type PageContent, type RenderPage } from "#rest-gateway/pages";
import { ApiError, fieldErrorsOf, showHiddenCharacters } from "#runtime";
import { readForm } from "../request/read-body.ts";

export type FormPage = {
  show(values: URLSearchParams, rejected: RejectedForm | null): PageContent | Promise<PageContent>;
  submit(values: URLSearchParams, request: GatewayRequest): Promise<GatewayResponse>;
};

/** Returns GET and POST handlers of a form page. A rejected form is shown again with the error. */
export function formHandlers(
  { show, submit: handleSubmit }: FormPage,
  { render, csrf }: Pick<PageDependencies, "render" | "csrf">,
): Readonly<Record<"GET" | "POST", GatewayHandler>> {
  return {
    GET: async ({ rawQuery }) => render(await show(new URLSearchParams(rawQuery), null)),
    POST: async (request) => {
      const values = await readForm(request);
      try {
        csrf.checkRequest(request, null);
        return await handleSubmit(values, request);
      } catch (thrown) {
        return renderRejected(thrown, values, render, (rejected) => show(values, rejected));
      }
    },
  };
}

/** Renders the page again, with the error and its status. */
export async function renderRejected(
  thrown: unknown,
  values: URLSearchParams,
  render: RenderPage,
  show: (rejected: RejectedForm) => PageContent | Promise<PageContent>,
): Promise<GatewayResponse> {
  const error = toFormError(thrown);
  const page = await show({ values, error });
  return render({ ...page, status: error.status, headers: { ...page.headers, ...errorHeaders(error) } });
}

/** Rethrows unexpected errors, which the gateway logs and answers. */
function toFormError(thrown: unknown): HttpError {
  const error = toHttpError(thrown);
  if (error.status >= 500 && !(thrown instanceof ApiError)) throw error;
  return error;
}

/** Returns a name that somebody else has chosen, so that it does not change the order of the text around it. */
export function isolatedName(name: string): Html {
  return html`<bdi>${showHiddenCharacters(name)}</bdi>`;
}

export type FormField = {
  readonly name: string;
  readonly label: string;
  readonly type: "text" | "email" | "password" | "date";
  /** The autocomplete attribute, for password managers. */
  readonly autocomplete: string;
  readonly hint?: string;
  readonly isOptional?: boolean;
  /** The value before anything was submitted. */
  readonly value?: string;
};

export type HtmlForm = {
  readonly action: string;
  readonly fields: readonly FormField[];
  readonly hidden?: Readonly<Record<string, string | null>>;
  readonly button: string;
  /** True if the first field to fill in has the focus; the default is true. */
  readonly takesFocus?: boolean;
};

/** A form with the submitted values and the error. */
export type RejectedForm = { readonly values: URLSearchParams; readonly error: HttpError };

/** Renders a form without scripts. Faults appear at their fields, also for screen readers; passwords are never sent back. */
export function renderForm(
  { action, fields, hidden = {}, button, takesFocus = true }: HtmlForm,
  rejected: RejectedForm | null,
): Html {
  const faults = rejected ? fieldErrorsOf(rejected.error) : [];
  const faultOf = (name: string) => faults.flatMap((fault) => (fault.field === name ? [fault.message] : []));
  const isAtField = fields.some(({ name }) => faultOf(name).length > 0);
  const valueIn = ({ type, name, value = "" }: FormField) =>
    type === "password" ? "" : (rejected?.values.get(name) ?? value);
  const first =
    fields.find(({ name }) => faultOf(name).length > 0) ?? fields.find((field) => valueIn(field) === "") ?? fields[0];
  return html`${rejected && !isAtField ? alert(rejected.error.message) : null}
    <form method="post" action="${action}">${hiddenInputs(hidden)}
      ${fields.map((field) =>
        renderField(field, {
          value: valueIn(field),
          faults: faultOf(field.name),
          isFocused: field === first && takesFocus,
        }),
      )}
      <button type="submit">${button}</button>
    </form>`;
}

export function hiddenInputs(hidden: Readonly<Record<string, string | null>>): Html[] {
  return Object.entries(hidden).flatMap(([name, value]) =>
    value === null ? [] : [html`<input type="hidden" name="${name}" value="${value}">`],
  );
}

/** Returns the hidden fields of a form of a signed-in user. */
export function hiddenFields({ id }: RequestSession, others: Readonly<Record<string, string>> = {}) {
  return { csrf: csrfTokenOf(id), ...others };
}

export function timeOf(moment: Date): Html {
  const text = moment.toISOString();
  return html`<time datetime="${text}">${text.slice(0, 16).replace("T", " ")} UTC</time>`;
}

export function alert(message: string): Html {
  return html`<p class="alert" role="alert">${message}</p>`;
}

type FieldState = { readonly value: string; readonly faults: readonly string[]; readonly isFocused: boolean };

function renderField(
  { name, label, type, autocomplete, hint, isOptional = false }: FormField,
  { value, faults, isFocused }: FieldState,
): Html {
  const isWrong = faults.length > 0;
  const described = [...(hint ? [`${name}-hint`] : []), ...(isWrong ? [`${name}-fault`] : [])].join(" ");
  const attributes = [
    ...(described === "" ? [] : [html` aria-describedby="${described}"`]),
    ...(isWrong ? [html` aria-invalid="true"`] : []),
    ...(isOptional ? [] : [html` required`]),
    ...(isFocused ? [html` autofocus`] : []),
  ];
  return html`
      <div class="field">
        <label for="${name}">${label}</label>
        ${hint ? html`<p class="hint" id="${name}-hint">${hint}</p>` : null}
        ${isWrong ? html`<p class="fault" id="${name}-fault">${faults.join(" ")}</p>` : null}
        <input id="${name}" name="${name}" type="${type}" value="${value}" autocomplete="${autocomplete}"
          autocapitalize="none" spellcheck="false"${attributes}>
      </div>`;
}

export type ProviderLink = { readonly name: string; readonly title: string };

/** The dependencies of the sign-in pages. */
export type PageDependencies = Pick<LimitedAuthDependencies, "accounts" | "csrf" | "limitExpensive"> & {
  readonly render: RenderPage;
  readonly passwordPolicy: PasswordPolicy;
  readonly providers: () => Promise<readonly ProviderLink[]>;
  /** Validates the redirect after the sign-in. */
  readonly readTarget: (text: string | null) => string | null;
  /** Returns where a new user begins. */
  readonly landing: (isAdministrator: boolean) => string;
};

/** Returns the source for `form-action` in a page's policy. A scheme of an app has no origin, and the policy has no IPv6 addresses. */
export function formActionSource(address: string): string {
  const { origin, protocol, hostname } = new URL(address);
  return origin === "null" || hostname.startsWith("[") ? protocol : origin;
}

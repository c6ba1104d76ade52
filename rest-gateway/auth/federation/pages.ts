import type { ApiError } from "../../../engine/errors.ts";
import type { GatewayRequest } from "../../http.ts";
import { html } from "../../pages/html.ts";
import type { Page } from "../../pages/page.ts";
import { alert, type RejectedForm, renderForm } from "../pages/render-form.ts";
import { SIGN_IN_PATH } from "../pages/sign-in-pages.ts";

/** Browsers get pages, programs get JSON. */
export function acceptsHtml({ headers }: Pick<GatewayRequest, "headers">): boolean {
  return (headers.accept ?? "").includes("text/html");
}

export function signedInPage(username: string): Page {
  return { title: "Signed in", content: html`<p>You are signed in as ${username}.</p>` };
}

export function linkedPage(): Page {
  return { title: "Linked", content: html`<p>You can now sign in with this provider.</p>` };
}

export function signedOutPage(): Page {
  return { title: "Signed out", content: html`<p>You are signed out.</p>` };
}

export function continuePage(address: string): Page {
  return { title: "Signed in", content: html`<p><a href="${address}">Go on</a></p>` };
}

export function codePage(refused: RejectedForm | null = null): Page {
  const field = {
    name: "code",
    label: "Code",
    type: "text",
    autocomplete: "one-time-code",
    hint: "Six digits of your authenticator app, or a backup code.",
  } as const;
  const content = renderForm({ action: "", fields: [field], button: "Sign in" }, refused);
  return { title: "One more step", content, status: refused?.error.status ?? 200 };
}

export function errorPage({ message, hint, status, headers }: ApiError): Page {
  const content = html`${alert(message)}
    ${hint === null ? null : html`<p>${hint}</p>`}
    <p><a href="${SIGN_IN_PATH}">Sign in another way</a></p>`;
  return { title: "Not signed in", content, status, headers };
}

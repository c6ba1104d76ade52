import type { ApiError } from "../../../engine/errors.ts";
import type { GatewayRequest } from "../../http.ts";
import { html } from "../../pages/html.ts";
import type { Page } from "../../pages/page.ts";
import { alert, type Refused, renderForm } from "../pages/form.ts";
import { SIGN_IN } from "../pages/sign-in.ts";

/** A browser shows what it is sent; a program reads it. */
export function wantsPage({ headers }: Pick<GatewayRequest, "headers">): boolean {
  return (headers.accept ?? "").includes("text/html");
}

export function signedInPage(username: string): Page {
  return { title: "Signed in", content: html`<p>You are signed in as ${username}.</p>` };
}

export function linkedPage(): Page {
  return { title: "Linked", content: html`<p>From now on you can sign in this way, too.</p>` };
}

export function signedOutPage(): Page {
  return { title: "Signed out", content: html`<p>You are signed out.</p>` };
}

export function goOnPage(address: string): Page {
  return { title: "Signed in", content: html`<p><a href="${address}">Go on</a></p>` };
}

export function codePage(refused: Refused | null = null): Page {
  const field = {
    name: "code",
    label: "Code",
    type: "text",
    autocomplete: "one-time-code",
    hint: "Of your authenticator app, or a backup code.",
  } as const;
  const content = renderForm({ action: "", fields: [field], button: "Sign in" }, refused);
  return { title: "One more step", content, status: refused?.error.status ?? 200 };
}

export function refusalPage({ message, hint, status, headers }: ApiError): Page {
  const content = html`${alert(message)}
    ${hint === null ? null : html`<p>${hint}</p>`}
    <p><a href="${SIGN_IN}">Sign in another way</a></p>`;
  return { title: "Not signed in", content, status, headers };
}

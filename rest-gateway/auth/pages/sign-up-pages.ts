import { describePolicy } from "../../../engine/auth/password-policy.ts";
import { keepSession } from "../../../engine/caller/session-cookie.ts";
import type { Routes } from "../../gateway.ts";
import { html } from "../../pages/html.ts";
import { seeOther } from "../../pages/page.ts";
import { clientInfoOf } from "../client-info.ts";
import { formHandlers } from "./form-handlers.ts";
import type { PageDependencies } from "./page-dependencies.ts";
import { requireFields } from "./read-form.ts";
import { type FormField, type HtmlForm, renderForm } from "./render-form.ts";
import { SIGN_IN_PATH, withRedirect } from "./sign-in-pages.ts";

const SIGN_UP_PATH = "/auth/sign-up";

/** The page to create an account, which also signs in. */
export function signUpPages(services: PageDependencies): Routes {
  const { accounts, readTarget, passwordPolicy, limitExpensive } = services;
  const { register, sessions } = accounts;
  const fields: readonly FormField[] = [
    { name: "name", label: "Your name", type: "text", autocomplete: "name", hint: "As others will see it." },
    { name: "email", label: "E-mail address", type: "email", autocomplete: "email" },
    newPasswordField("Password", describePolicy(passwordPolicy)),
  ];

  return {
    [SIGN_UP_PATH]: formHandlers(
      {
        show(values, refused) {
          const target = values.get("redirect_to");
          const form: HtmlForm = {
            action: SIGN_UP_PATH,
            fields,
            hidden: { redirect_to: target },
            button: "Create the account",
          };
          const other = html`<nav aria-label="Other ways"><a href="${withRedirect(SIGN_IN_PATH, target)}">I have an account</a></nav>`;
          return { title: "Create an account", content: html`${renderForm(form, refused)}${other}` };
        },
        async submit(values, request) {
          await limitExpensive(request);
          const target = readTarget(values.get("redirect_to"));
          const account = requireFields(values, ["name", "email", "password"]);
          const { opened } = await register(account, clientInfoOf(request), sessions.open);
          return seeOther(target ?? SIGN_IN_PATH, keepSession(opened.id));
        },
      },
      services,
    ),
  };
}

export function newPasswordField(label: string, hint: string): FormField {
  return { name: "password", label, type: "password", autocomplete: "new-password", hint };
}

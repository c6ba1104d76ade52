import { describePolicy } from "../../../engine/auth/password-policy.ts";
import { keepSession } from "../../../engine/caller/session-cookie.ts";
import type { Routes } from "../../gateway.ts";
import { html } from "../../pages/html.ts";
import { seeOther } from "../../pages/page.ts";
import { senderOf } from "../sender.ts";
import { type Form, type FormField, renderForm } from "./form.ts";
import { requireFields } from "./read-form.ts";
import type { PageServices } from "./services.ts";
import { SIGN_IN, withTarget } from "./sign-in.ts";
import { formHandlers } from "./submit.ts";

const SIGN_UP = "/auth/sign-up";

/** A new account, which is signed in at once. */
export function signUpPages(services: PageServices): Routes {
  const { accounts, readTarget, passwordPolicy, limitExpensive } = services;
  const { register, sessions } = accounts;
  const fields: readonly FormField[] = [
    { name: "name", label: "Your name", type: "text", autocomplete: "name", hint: "As others will see it." },
    { name: "email", label: "E-mail address", type: "email", autocomplete: "email" },
    newPassword("Password", describePolicy(passwordPolicy)),
  ];

  return {
    [SIGN_UP]: formHandlers(
      {
        show(values, refused) {
          const target = values.get("redirect_to");
          const form: Form = { action: SIGN_UP, fields, hidden: { redirect_to: target }, button: "Create the account" };
          const other = html`<nav aria-label="Other ways"><a href="${withTarget(SIGN_IN, target)}">I have an account</a></nav>`;
          return { title: "Create an account", content: html`${renderForm(form, refused)}${other}` };
        },
        async take(values, request) {
          await limitExpensive(request);
          const target = readTarget(values.get("redirect_to"));
          const account = requireFields(values, ["name", "email", "password"]);
          const { opened } = await register(account, senderOf(request), sessions.open);
          return seeOther(target ?? SIGN_IN, keepSession(opened.id));
        },
      },
      services,
    ),
  };
}

export function newPassword(label: string, hint: string): FormField {
  return { name: "password", label, type: "password", autocomplete: "new-password", hint };
}

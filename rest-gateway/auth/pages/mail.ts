import { LINKED_PAGES } from "../../../engine/auth/letters.ts";
import { describePolicy } from "../../../engine/auth/password-policy.ts";
import type { Routes } from "../../gateway.ts";
import { html } from "../../pages/html.ts";
import { lettersOf } from "../mail-routes.ts";
import { senderOf } from "../sender.ts";
import { type Form, type FormField, renderForm } from "./form.ts";
import { requireFields } from "./read-form.ts";
import type { PageServices } from "./services.ts";
import { SIGN_IN } from "./sign-in.ts";
import { newPassword } from "./sign-up.ts";
import { formHandlers } from "./submit.ts";

const FORGOTTEN = "/auth/forgotten-password";
const EMAIL: FormField = { name: "email", label: "E-mail address", type: "email", autocomplete: "email" };
const SIGN_IN_LINK = html`<p><a href="${SIGN_IN}">Sign in</a></p>`;

/** Asking for a mail, and where the links in mails lead: a button there spends the link, opening it does not. */
export function mailPages(services: PageServices): Routes {
  const { accounts, render, passwordPolicy, limitExpensive } = services;
  const { letters, mailLinks } = accounts;
  const password = newPassword("New password", describePolicy(passwordPolicy));

  return {
    [FORGOTTEN]: formHandlers(
      {
        show(_values, refused) {
          const form: Form = { action: FORGOTTEN, fields: [EMAIL], button: "Send me a link" };
          return { title: "Forgotten your password?", content: renderForm(form, refused) };
        },
        async take(values, request) {
          await limitExpensive(request);
          lettersOf(letters).offerReset(requireFields(values, ["email"]).email, senderOf(request));
          const content = html`<p>If there is an account of that address, a mail is on its way to it. Its link works for an hour.</p>`;
          return render({ title: "Look into your mail", content });
        },
      },
      services,
    ),
    [LINKED_PAGES.newPassword]: formHandlers(
      {
        show(values, refused) {
          const hidden = { token: values.get("token") ?? "" };
          const form: Form = {
            action: LINKED_PAGES.newPassword,
            fields: [password],
            hidden,
            button: "Set the password",
          };
          return { title: "Set a new password", content: renderForm(form, refused) };
        },
        async take(values, request) {
          const { password } = requireFields(values, ["password"]);
          await mailLinks.resetPassword(values.get("token") ?? "", password, senderOf(request));
          const content = html`<p>Whatever was signed in before is so no longer.</p>${SIGN_IN_LINK}`;
          return render({ title: "The password is set", content });
        },
      },
      services,
    ),
    [LINKED_PAGES.verifyEmail]: formHandlers(
      {
        show(values, refused) {
          const hidden = { token: values.get("token") ?? "" };
          const form: Form = { action: LINKED_PAGES.verifyEmail, fields: [], hidden, button: "This is my address" };
          return { title: "Confirm your e-mail address", content: renderForm(form, refused) };
        },
        async take(values, request) {
          await mailLinks.verifyEmail(values.get("token") ?? "", senderOf(request));
          return render({ title: "The address is confirmed", content: SIGN_IN_LINK });
        },
      },
      services,
    ),
  };
}

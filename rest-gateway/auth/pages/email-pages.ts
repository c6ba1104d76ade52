import { EMAIL_LINK_PATHS } from "../../../engine/auth/account-emails.ts";
import { describePolicy } from "../../../engine/auth/password-policy.ts";
import type { Routes } from "../../gateway.ts";
import { html } from "../../pages/html.ts";
import { clientInfoOf } from "../client-info.ts";
import { requireEmails } from "../email-routes.ts";
import { formHandlers } from "./form-handlers.ts";
import type { PageDependencies } from "./page-dependencies.ts";
import { requireFields } from "./read-form.ts";
import { type FormField, type HtmlForm, renderForm } from "./render-form.ts";
import { SIGN_IN_PATH } from "./sign-in-pages.ts";
import { newPasswordField } from "./sign-up-pages.ts";

const FORGOTTEN_PASSWORD_PATH = "/auth/forgotten-password";
const EMAIL: FormField = { name: "email", label: "E-mail address", type: "email", autocomplete: "email" };
const SIGN_IN_LINK = html`<p><a href="${SIGN_IN_PATH}">Sign in</a></p>`;

/** Pages to request e-mails, and pages that the links in e-mails open. Only submitting the form uses the link. */
export function emailPages(services: PageDependencies): Routes {
  const { accounts, render, passwordPolicy, limitExpensive } = services;
  const { emails, emailLinks } = accounts;
  const password = newPasswordField("New password", describePolicy(passwordPolicy));

  return {
    [FORGOTTEN_PASSWORD_PATH]: formHandlers(
      {
        show(_values, refused) {
          const form: HtmlForm = { action: FORGOTTEN_PASSWORD_PATH, fields: [EMAIL], button: "Send me a link" };
          return { title: "Forgotten your password?", content: renderForm(form, refused) };
        },
        async submit(values, request) {
          await limitExpensive(request);
          requireEmails(emails).sendReset(requireFields(values, ["email"]).email, clientInfoOf(request));
          const content = html`<p>If an account with this address exists, an e-mail was sent to it. Its link is valid for one hour.</p>`;
          return render({ title: "Check your e-mail", content });
        },
      },
      services,
    ),
    [EMAIL_LINK_PATHS.newPassword]: formHandlers(
      {
        show(values, refused) {
          const hidden = { token: values.get("token") ?? "" };
          const form: HtmlForm = {
            action: EMAIL_LINK_PATHS.newPassword,
            fields: [password],
            hidden,
            button: "Set the password",
          };
          return { title: "Set a new password", content: renderForm(form, refused) };
        },
        async submit(values, request) {
          const { password } = requireFields(values, ["password"]);
          await emailLinks.resetPassword(values.get("token") ?? "", password, clientInfoOf(request));
          const content = html`<p>All earlier sessions have ended.</p>${SIGN_IN_LINK}`;
          return render({ title: "The password is set", content });
        },
      },
      services,
    ),
    [EMAIL_LINK_PATHS.verifyEmail]: formHandlers(
      {
        show(values, refused) {
          const hidden = { token: values.get("token") ?? "" };
          const form: HtmlForm = {
            action: EMAIL_LINK_PATHS.verifyEmail,
            fields: [],
            hidden,
            button: "This is my address",
          };
          return { title: "Confirm your e-mail address", content: renderForm(form, refused) };
        },
        async submit(values, request) {
          await emailLinks.verifyEmail(values.get("token") ?? "", clientInfoOf(request));
          return render({ title: "The address is confirmed", content: SIGN_IN_LINK });
        },
      },
      services,
    ),
  };
}

import { EMAIL_LINK_PATHS } from "../../engine/accounts/email-links.ts";
import { describePolicy } from "../../engine/accounts/password-policy.ts";
import { setSessionCookie } from "../../http/session-cookie.ts";
import type { GatewayRoutes } from "../http/router.ts";
import { html, seeOther } from "../pages/page.ts";
import { requireEmails } from "./account-routes.ts";
import { clientInfoOf } from "./authenticate.ts";
import { type FormField, formHandlers, type HtmlForm, type PageDependencies, renderForm } from "./form-page.ts";
import { requireFields } from "./read-body.ts";
import { SIGN_IN_PATH, signInPages, withRedirect } from "./sign-in-pages.ts";

const SIGN_UP_PATH = "/auth/sign-up";

const FORGOTTEN_PASSWORD_PATH = "/auth/forgotten-password";
const EMAIL_FIELD: FormField = { name: "email", label: "E-mail address", type: "email", autocomplete: "email" };
const SIGN_IN_LINK = html`<p><a href="${SIGN_IN_PATH}">Sign in</a></p>`;

/** Sign-in pages, which work without scripts. */
export function authPages(services: PageDependencies): GatewayRoutes {
  return { ...signInPages(services), ...signUpPages(services), ...emailPages(services) };
}

/** The page to create an account, which also signs in. */
function signUpPages(services: PageDependencies): GatewayRoutes {
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
          return seeOther(target ?? SIGN_IN_PATH, setSessionCookie(opened.id));
        },
      },
      services,
    ),
  };
}

function newPasswordField(label: string, hint: string): FormField {
  return { name: "password", label, type: "password", autocomplete: "new-password", hint };
}

/** Pages to request e-mails, and pages that the links in e-mails open. Only submitting the form uses the link. */
function emailPages(services: PageDependencies): GatewayRoutes {
  const { accounts, render, passwordPolicy, limitExpensive } = services;
  const { emails, emailLinks } = accounts;
  const password = newPasswordField("New password", describePolicy(passwordPolicy));

  return {
    [FORGOTTEN_PASSWORD_PATH]: formHandlers(
      {
        show(_values, refused) {
          const form: HtmlForm = { action: FORGOTTEN_PASSWORD_PATH, fields: [EMAIL_FIELD], button: "Send me a link" };
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

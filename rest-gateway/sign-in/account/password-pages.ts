import { describePolicy } from "#accounts";
import { clientInfoOf, setSessionCookie } from "#http";
import { html } from "#rest-gateway/pages";
import type { FormField, HtmlForm } from "../pages/form-page.ts";
import { hiddenFields } from "../pages/form-page.ts";
import { ACCOUNT_PATH, BACK_TO_ACCOUNT } from "../pages/sign-in-pages.ts";
import { requireFields } from "../request/read-body.ts";
import { requireEmails } from "./account-routes.ts";
import {
  type AccountPageDependencies,
  CONFIRMATION_FIELD,
  confirmedForm,
  returnToAccount,
  type SignedInPage,
} from "./signed-in-page.ts";

const PASSWORD_PATH = `${ACCOUNT_PATH}/password`;
const ADDRESS_PATH = `${ACCOUNT_PATH}/address`;
const ADDRESS_FIELD: FormField = { name: "email", label: "New e-mail address", type: "email", autocomplete: "email" };

/** The page for a new password, which ends all other sign-ins; this browser gets a new session. */
export function passwordPage({ accounts, passwordPolicy }: AccountPageDependencies): SignedInPage {
  const { own, changePassword, sessions } = accounts;
  const hint = describePolicy(passwordPolicy);
  const fields: readonly FormField[] = [
    { ...CONFIRMATION_FIELD, name: "currentPassword" },
    { name: "newPassword", label: "New password", type: "password", autocomplete: "new-password", hint },
  ];
  return {
    async show({ session, rejected }) {
      const account = await own.read(session.userId);
      const form: HtmlForm = {
        action: PASSWORD_PATH,
        fields,
        hidden: hiddenFields(session),
        button: "Change the password",
      };
      const content = html`${confirmedForm(account, form, rejected)}${BACK_TO_ACCOUNT}`;
      return { title: "Change your password", content };
    },
    async submit({ session, values, request }) {
      const change = requireFields(values, ["currentPassword", "newPassword"]);
      const { id } = await changePassword(session.userId, change, clientInfoOf(request), sessions.open);
      return returnToAccount("password", setSessionCookie(id));
    },
  };
}

/** The page for a new address, which applies when the link in the e-mail to it is used. The current address gets a notice. */
export function addressPage({ accounts, render, limitExpensive }: AccountPageDependencies): SignedInPage {
  const { own, confirmPassword, emailLinks, emails } = accounts;
  return {
    async show({ session, rejected }) {
      const account = await own.read(session.userId);
      const form: HtmlForm = {
        action: ADDRESS_PATH,
        fields: [ADDRESS_FIELD, CONFIRMATION_FIELD],
        hidden: hiddenFields(session),
        button: "Send me a link",
      };
      const current = html`<p>Your address is <strong>${account.email}</strong>.</p>`;
      const content = html`${current}${confirmedForm(account, form, rejected)}${BACK_TO_ACCOUNT}`;
      return { title: "Change your e-mail address", content };
    },
    async submit({ session, values, request }) {
      await limitExpensive(request);
      const sendEmails = requireEmails(emails);
      const { email, password } = requireFields(values, ["email", "password"]);
      const clientInfo = clientInfoOf(request);
      const change = await confirmPassword(session.userId, password, clientInfo, (client) =>
        emailLinks.beginAddressChange(client, session.userId, email, clientInfo),
      );
      sendEmails.sendAddressChange(change);
      const content = html`<p>An e-mail was sent to <strong>${email}</strong>. Your address changes when you open its link, which is
valid for one hour. A notice was sent to your current address.</p>${BACK_TO_ACCOUNT}`;
      return render({ title: "Check your e-mail", content });
    },
  };
}

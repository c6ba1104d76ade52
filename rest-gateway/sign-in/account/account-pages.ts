import { describePolicy, EMAIL_LINK_PATHS, FORGOTTEN_PASSWORD_PATH } from "#accounts";
import { clientInfoOf, type GatewayRoutes, setSessionCookie } from "#http";
import { html, seeOther } from "#rest-gateway/pages";
import {
  type FormField,
  type FormPage,
  formHandlers,
  type HtmlForm,
  isolatedName,
  type PageDependencies,
  renderForm,
} from "../pages/form-page.ts";
import { passkeySignInPage } from "../pages/passkey-pages.ts";
import { ACCOUNT_PATH, PASSKEY_SIGN_IN_PATH, SIGN_IN_PATH, signInPages, withRedirect } from "../pages/sign-in-pages.ts";
import { requireFields } from "../request/read-body.ts";
import { keysPage, linkSubmission, revokeKeySubmission, signInsSubmission, unlinkSubmission } from "./access-pages.ts";
import { accountPage, verificationSubmission } from "./account-page.ts";
import { requireEmails } from "./account-routes.ts";
import { WITHDRAW_PATH, withdrawSubmission } from "./applications.ts";
import { authenticatorPage, backupCodesPage } from "./authenticator-pages.ts";
import { passkeyPage, passkeysPage } from "./passkey-pages.ts";
import { addressPage, passwordPage } from "./password-pages.ts";
import { type AccountPageDependencies, type SignedInPage, signedInHandlers } from "./signed-in-page.ts";

const SIGN_UP_PATH = "/auth/sign-up";
const EMAIL_FIELD: FormField = { name: "email", label: "E-mail address", type: "email", autocomplete: "email" };
const SIGN_IN_LINK = html`<p><a href="${SIGN_IN_PATH}">Sign in</a></p>`;

/** Returns all pages of sign-in and accounts; they work without scripts. */
export function authPages(services: AccountPageDependencies): GatewayRoutes {
  return {
    ...signInPages(services),
    [PASSKEY_SIGN_IN_PATH]: formHandlers(passkeySignInPage(services), services),
    [SIGN_UP_PATH]: formHandlers(signUpPage(services), services),
    [FORGOTTEN_PASSWORD_PATH]: formHandlers(forgottenPasswordPage(services), services),
    [EMAIL_LINK_PATHS.newPassword]: formHandlers(newPasswordPage(services), services),
    [EMAIL_LINK_PATHS.invitation]: formHandlers(invitationPage(services), services),
    [EMAIL_LINK_PATHS.verifyEmail]: formHandlers(verifyEmailPage(services), services),
    [EMAIL_LINK_PATHS.changeEmail]: formHandlers(changeAddressPage(services), services),
    ...signedInPages(services),
  };
}

/** Creates an account and signs in. */
function signUpPage({ accounts, readTarget, passwordPolicy, limitExpensive }: PageDependencies): FormPage {
  const { register, sessions } = accounts;
  const fields: readonly FormField[] = [
    { name: "name", label: "Your name", type: "text", autocomplete: "name", hint: "As others will see it." },
    EMAIL_FIELD,
    newPasswordField("Password", describePolicy(passwordPolicy)),
  ];
  return {
    show(values, rejected) {
      const target = values.get("redirect_to");
      const hidden = { redirect_to: target };
      const form: HtmlForm = { action: SIGN_UP_PATH, fields, hidden, button: "Create the account" };
      const other = html`<nav aria-label="Other ways"><a href="${withRedirect(SIGN_IN_PATH, target)}">I have an account</a></nav>`;
      return { title: "Create an account", content: html`${renderForm(form, rejected)}${other}` };
    },
    async submit(values, request) {
      await limitExpensive(request);
      const target = readTarget(values.get("redirect_to"));
      const account = requireFields(values, ["name", "email", "password"]);
      const { opened } = await register(account, clientInfoOf(request), sessions.open);
      return seeOther(target ?? ACCOUNT_PATH, setSessionCookie(opened.id));
    },
  };
}

function forgottenPasswordPage({ accounts: { emails }, render, limitExpensive }: PageDependencies): FormPage {
  return {
    show(_values, rejected) {
      const form: HtmlForm = { action: FORGOTTEN_PASSWORD_PATH, fields: [EMAIL_FIELD], button: "Send me a link" };
      return { title: "Forgotten your password?", content: renderForm(form, rejected) };
    },
    async submit(values, request) {
      await limitExpensive(request);
      requireEmails(emails).sendReset(requireFields(values, ["email"]).email, clientInfoOf(request));
      const content = html`<p>If an account with this address exists, an e-mail was sent to it. Its link is valid for one hour.</p>`;
      return render({ title: "Check your e-mail", content });
    },
  };
}

/** The page that a link in an e-mail opens. Only submitting the form uses the link, because mail scanners open all links. */
function newPasswordPage({ accounts: { emailLinks }, render, passwordPolicy }: PageDependencies): FormPage {
  const action = EMAIL_LINK_PATHS.newPassword;
  const field = newPasswordField("New password", describePolicy(passwordPolicy));
  return {
    show(values, rejected) {
      const hidden = { token: values.get("token") ?? "" };
      const form: HtmlForm = { action, fields: [field], hidden, button: "Set the password" };
      return { title: "Set a new password", content: renderForm(form, rejected) };
    },
    async submit(values, request) {
      const { password } = requireFields(values, ["password"]);
      await emailLinks.resetPassword(values.get("token") ?? "", password, clientInfoOf(request));
      const content = html`<p>All earlier sessions have ended.</p>${SIGN_IN_LINK}`;
      return render({ title: "The password is set", content });
    },
  };
}

/** The page that the link of an invitation opens, like newPasswordPage. Choosing a password signs in. */
function invitationPage({ accounts: { invitations, sessions }, passwordPolicy, landing }: PageDependencies): FormPage {
  const action = EMAIL_LINK_PATHS.invitation;
  const field = newPasswordField("Password", describePolicy(passwordPolicy));
  return {
    async show(values, rejected) {
      const token = values.get("token") ?? "";
      const invitation = await invitations.find(token);
      if (!invitation) {
        const content = html`<p>It was used before, has expired, or was taken back. Ask for a new one.</p>${SIGN_IN_LINK}`;
        return { title: "This invitation is not valid", content };
      }
      const { email, role, project } = invitation;
      const form: HtmlForm = { action, fields: [field], hidden: { token }, button: "Accept the invitation" };
      const content = html`<p>You will sign in to ${isolatedName(project)} as <strong>${email}</strong>, with the role <strong>${role}</strong>.</p>
        ${renderForm(form, rejected)}`;
      return { title: "Choose a password", content };
    },
    async submit(values, request) {
      const { password } = requireFields(values, ["password"]);
      const token = values.get("token") ?? "";
      const { opened, isAdministrator } = await invitations.accept(
        token,
        password,
        clientInfoOf(request),
        sessions.open,
      );
      return seeOther(landing(isAdministrator), setSessionCookie(opened.id));
    },
  };
}

/** The page that a link in an e-mail opens, like newPasswordPage. */
function verifyEmailPage({ accounts: { emailLinks }, render }: PageDependencies): FormPage {
  const action = EMAIL_LINK_PATHS.verifyEmail;
  return {
    show(values, rejected) {
      const hidden = { token: values.get("token") ?? "" };
      const form: HtmlForm = { action, fields: [], hidden, button: "This is my address" };
      return { title: "Confirm your e-mail address", content: renderForm(form, rejected) };
    },
    async submit(values, request) {
      await emailLinks.verifyEmail(values.get("token") ?? "", clientInfoOf(request));
      return render({ title: "The address is confirmed", content: SIGN_IN_LINK });
    },
  };
}

/** The page that a link in an e-mail to the new address opens, like newPasswordPage. */
function changeAddressPage({ accounts: { emailLinks, emails }, render }: PageDependencies): FormPage {
  const action = EMAIL_LINK_PATHS.changeEmail;
  return {
    show(values, rejected) {
      const hidden = { token: values.get("token") ?? "" };
      const form: HtmlForm = { action, fields: [], hidden, button: "Use this address" };
      return { title: "Change your e-mail address", content: renderForm(form, rejected) };
    },
    async submit(values, request) {
      emails?.sendAddressChanged(await emailLinks.changeAddress(values.get("token") ?? "", clientInfoOf(request)));
      const content = html`<p>E-mails go to this address from now on.</p>
        <p><a href="${ACCOUNT_PATH}">Your account</a></p>`;
      return render({ title: "The address is changed", content });
    },
  };
}

function newPasswordField(label: string, hint: string): FormField {
  return { name: "password", label, type: "password", autocomplete: "new-password", hint };
}

/** The account page, and the pages and forms that it leads to. */
function signedInPages(services: AccountPageDependencies): GatewayRoutes {
  const account = accountPage(services);
  const keys = keysPage(services);
  const page = (each: SignedInPage) => signedInHandlers(each, services);
  /** Makes the form of a button; a rejected one is shown on the page with the button. */
  const button = (submit: SignedInPage["submit"], { show } = account) => ({ POST: page({ show, submit }).POST });
  return {
    [ACCOUNT_PATH]: page(account),
    [`${ACCOUNT_PATH}/verification`]: button(verificationSubmission(services)),
    [`${ACCOUNT_PATH}/password`]: page(passwordPage(services)),
    [`${ACCOUNT_PATH}/address`]: page(addressPage(services)),
    [`${ACCOUNT_PATH}/authenticator`]: page(authenticatorPage(services)),
    [`${ACCOUNT_PATH}/passkeys`]: page(passkeysPage(services)),
    [`${ACCOUNT_PATH}/passkeys/edit`]: page(passkeyPage(services)),
    [`${ACCOUNT_PATH}/backup-codes`]: page(backupCodesPage(services)),
    [`${ACCOUNT_PATH}/sign-ins`]: button(signInsSubmission(services)),
    [`${ACCOUNT_PATH}/keys`]: page(keys),
    [`${ACCOUNT_PATH}/keys/revoke`]: button(revokeKeySubmission(services), keys),
    [`${ACCOUNT_PATH}/providers/link`]: button(linkSubmission(services)),
    [`${ACCOUNT_PATH}/providers/unlink`]: button(unlinkSubmission(services)),
    ...(services.oauthStore && { [WITHDRAW_PATH]: button(withdrawSubmission(services.oauthStore)) }),
  };
}

import { type AccountSummary, digestOf, type FactorEnrolment } from "#accounts";
import type { ClientInfo } from "#accounts/identity";
import { clientInfoOf } from "#http";
import type { RequestSession } from "#rest-gateway/authenticate";
import { type Html, html, type PageContent } from "#rest-gateway/pages";
import { type HtmlForm, hiddenFields, type RejectedForm, renderForm } from "../pages/form-page.ts";
import { ACCOUNT_PATH, BACK_TO_ACCOUNT, CODE_FIELD } from "../pages/sign-in-pages.ts";
import { requireFields } from "../request/read-body.ts";
import { BACKUP_CODES_WARNING } from "./account-routes.ts";
import {
  type AccountPageDependencies,
  CONFIRMATION_FIELD,
  confirmedForm,
  returnToAccount,
  type SignedInPage,
  withoutForm,
} from "./signed-in-page.ts";

const AUTHENTICATOR_PATH = `${ACCOUNT_PATH}/authenticator`;
const BACKUP_CODES_PATH = `${ACCOUNT_PATH}/backup-codes`;

/** The page for enrolment in two steps, the password and the first code; if an app is enabled, for its removal. */
export function authenticatorPage({ accounts, render }: AccountPageDependencies): SignedInPage {
  const { own, factors, confirmPassword } = accounts;
  const confirm = (session: RequestSession, values: URLSearchParams, clientInfo: ClientInfo) =>
    confirmPassword(session.userId, requireFields(values, ["password"]).password, clientInfo, async () => {});

  return {
    async show({ session, values, rejected }) {
      const account = await own.read(session.userId);
      const isConfirming = rejected !== null && values.get("step") === "enable";
      const pending = isConfirming ? await factors.pendingEnrolment(session.userId) : null;
      if (pending) return enrolmentPage(session, pending, rejected);
      const page = account.factorEnabledAt === null ? startPage : removalPage;
      return page(session, account, rejected);
    },
    async submit({ session, values, request }) {
      const clientInfo = clientInfoOf(request);
      switch (values.get("step")) {
        case "enable": {
          const { code } = requireFields(values, ["code"]);
          const signIn = { sessionId: null, sessionDigest: digestOf(session.id) };
          const { backupCodes } = await factors.enable(session.userId, code, clientInfo, signIn);
          return render(codesPage("The authenticator app is on", backupCodes));
        }
        case "disable": {
          const { code } = requireFields(values, ["password", "code"]);
          await confirm(session, values, clientInfo);
          await factors.disable(session.userId, code, clientInfo);
          return returnToAccount("authenticator");
        }
        default:
          await confirm(session, values, clientInfo);
          return render(enrolmentPage(session, await factors.enroll(session.userId, clientInfo), null));
      }
    },
  };
}

/** Replaces the backup codes. */
export function backupCodesPage({ accounts, render }: AccountPageDependencies): SignedInPage {
  const { own, factors, confirmPassword } = accounts;
  return {
    async show({ session, rejected }) {
      const account = await own.read(session.userId);
      const title = "Backup codes";
      if (account.factorEnabledAt === null) {
        const first = html`<p>Backup codes belong to an authenticator app. <a href="${AUTHENTICATOR_PATH}">Set it up</a> first.</p>`;
        return { title, content: html`${withoutForm(first, rejected)}${BACK_TO_ACCOUNT}` };
      }
      const form: HtmlForm = {
        action: BACKUP_CODES_PATH,
        fields: [CONFIRMATION_FIELD, CODE_FIELD],
        hidden: hiddenFields(session),
        button: "Make new codes",
      };
      const left = html`<p>${account.backupCodes} of your codes are unused. New codes replace all of them.</p>`;
      return { title, content: html`${left}${confirmedForm(account, form, rejected)}${BACK_TO_ACCOUNT}` };
    },
    async submit({ session, values, request }) {
      const { password, code } = requireFields(values, ["password", "code"]);
      const clientInfo = clientInfoOf(request);
      await confirmPassword(session.userId, password, clientInfo, async () => {});
      const { backupCodes } = await factors.renewBackupCodes(session.userId, code, clientInfo);
      return render(codesPage("Your new backup codes", backupCodes));
    },
  };
}

function startPage(session: RequestSession, account: AccountSummary, rejected: RejectedForm | null): PageContent {
  const form: HtmlForm = {
    action: AUTHENTICATOR_PATH,
    fields: [CONFIRMATION_FIELD],
    hidden: hiddenFields(session, { step: "enroll" }),
    button: "Go on",
  };
  const about = html`<p>An authenticator app on your phone shows a code that signing in then requires, besides the password.</p>`;
  const content = html`${about}${confirmedForm(account, form, rejected)}${BACK_TO_ACCOUNT}`;
  return { title: "Set up an authenticator app", content };
}

function enrolmentPage(
  session: RequestSession,
  { secret, qrCode }: FactorEnrolment,
  rejected: RejectedForm | null,
): PageContent {
  const form: HtmlForm = {
    action: AUTHENTICATOR_PATH,
    fields: [{ ...CODE_FIELD, hint: "The six digits that the app shows." }],
    hidden: hiddenFields(session, { step: "enable" }),
    button: "Turn it on",
  };
  const content = html`<p>Scan this code with the app, or enter the key by hand.</p>
<p><img class="qr" src="${qrCode}" alt="QR code of the key below"></p>
<dl><dt>Key</dt><dd><code>${secret.replace(/(.{4})(?=.)/g, "$1 ")}</code></dd></dl>
${renderForm(form, rejected)}${BACK_TO_ACCOUNT}`;
  return { title: "Set up an authenticator app", content };
}

function removalPage(session: RequestSession, account: AccountSummary, rejected: RejectedForm | null): PageContent {
  const form: HtmlForm = {
    action: AUTHENTICATOR_PATH,
    fields: [CONFIRMATION_FIELD, CODE_FIELD],
    hidden: hiddenFields(session, { step: "disable" }),
    button: "Remove the app",
  };
  const about = html`<p>Without the app, your password alone is enough to sign in.</p>`;
  return {
    title: "Remove the authenticator app",
    content: html`${about}${confirmedForm(account, form, rejected)}${BACK_TO_ACCOUNT}`,
  };
}

function codesPage(title: string, codes: readonly string[]): PageContent {
  const list: Html = html`<ul class="codes">${codes.map((code) => html`<li><code>${code}</code></li>`)}</ul>`;
  return { title, content: html`<p>${BACKUP_CODES_WARNING}</p>${list}${BACK_TO_ACCOUNT}` };
}

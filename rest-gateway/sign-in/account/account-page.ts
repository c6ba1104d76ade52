import type { AccountSummary, LinkedProvider, SignIn } from "#accounts";
import { clientInfoOf } from "#http";
import type { RequestSession } from "#rest-gateway/authenticate";
import { type Html, html } from "#rest-gateway/pages";
import { fieldErrorsOf } from "#runtime";
import type { ListedGrant } from "../oauth/oauth-store.ts";
import {
  alert,
  type FormField,
  type HtmlForm,
  hiddenFields,
  type ProviderLink,
  type RejectedForm,
  renderForm,
  timeOf,
} from "../pages/form-page.ts";
import { ACCOUNT_PATH, SIGN_OUT_PATH } from "../pages/sign-in-pages.ts";
import { requireFields } from "../request/read-body.ts";
import { requireEmails } from "./account-routes.ts";
import { applicationList } from "./applications.ts";
import { type AccountPageDependencies, renderButton, returnToAccount, type SignedInPage } from "./signed-in-page.ts";

/** The messages of the page after a form was submitted, by the parameter `done`. */
const DONE_MESSAGES = new Map([
  ["name", "Your name is saved."],
  ["verification", "An e-mail is sent, unless one was sent within the last minute."],
  ["password", "Your password is changed. All other sign-ins have ended."],
  ["authenticator", "The authenticator app is removed. Signing in no longer requires a code."],
  ["sign-in", "The sign-in has ended."],
  ["sign-ins", "All other sign-ins have ended."],
  ["linked", "The provider is linked."],
  ["unlinked", "The provider is no longer linked."],
  ["application", "The application has no access any more."],
]);

type AccountDetails = {
  readonly account: AccountSummary;
  readonly signIns: readonly SignIn[];
  readonly keyCount: number;
  readonly passkeyCount: number;
  readonly linked: readonly LinkedProvider[];
  readonly unlinked: readonly ProviderLink[];
  readonly grants: readonly ListedGrant[];
};

export function accountPage({
  accounts: { own, apiKeys, passkeys },
  providers,
  oauthStore,
}: AccountPageDependencies): SignedInPage {
  const readDetails = async ({ userId, id }: RequestSession): Promise<AccountDetails> => {
    const [account, signIns, keys, ownPasskeys, linked, all, grants] = await Promise.all([
      own.read(userId),
      own.signIns(userId, id),
      apiKeys.list({ ownerId: userId }),
      passkeys.list(userId),
      own.linkedProviders(userId),
      providers(),
      oauthStore?.grants(userId) ?? [],
    ]);
    const isLinked = (provider: ProviderLink) => linked.some(({ name }) => name === provider.name);
    const keyCount = keys.filter(({ isLive }) => isLive).length;
    const unlinked = all.filter((provider) => !isLinked(provider));
    return { account, signIns, keyCount, passkeyCount: ownPasskeys.length, linked, unlinked, grants };
  };

  return {
    async show({ session, values, rejected }) {
      const details = await readDetails(session);
      const content = html`${messageOf(values, rejected)}
<div class="sections">
${profileSection(session, details, rejected)}
${securitySection(details)}
${signInsSection(session, details)}
${accessSection(session, details)}
</div>
${renderButton(session, { action: SIGN_OUT_PATH, button: "Sign out" })}
<nav aria-label="Go on"><a href="/">Start page</a></nav>`;
      return { title: "Your account", content, isWide: true };
    },
    async submit({ session, values }) {
      await own.rename(session.userId, requireFields(values, ["name"]).name);
      return returnToAccount("name");
    },
  };
}

/** Sends the e-mail to verify the address again. */
export function verificationSubmission({
  accounts: { emails },
  limitExpensive,
}: AccountPageDependencies): SignedInPage["submit"] {
  return async ({ session, request }) => {
    await limitExpensive(request);
    requireEmails(emails).sendVerification(session.userId, clientInfoOf(request));
    return returnToAccount("verification");
  };
}

function messageOf(values: URLSearchParams, rejected: RejectedForm | null): Html | null {
  if (rejected)
    return isNameFault(rejected)
      ? null
      : alert([rejected.error.message, rejected.error.hint].filter(Boolean).join(" "));
  const message = DONE_MESSAGES.get(values.get("done") ?? "");
  return message === undefined ? null : html`<p class="done" role="status">${message}</p>`;
}

function isNameFault({ error }: RejectedForm): boolean {
  return fieldErrorsOf(error).some(({ field }) => field === "name");
}

function section(id: string, title: string, content: Html): Html {
  return html`<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2>${content}</section>`;
}

function profileSection(session: RequestSession, { account }: AccountDetails, rejected: RejectedForm | null): Html {
  const { name, email, username, role, isVerified } = account;
  const field: FormField = { name: "name", label: "Name", type: "text", autocomplete: "name", value: name };
  const form: HtmlForm = {
    action: ACCOUNT_PATH,
    fields: [field],
    hidden: hiddenFields(session),
    button: "Save the name",
    takesFocus: rejected !== null && isNameFault(rejected),
  };
  const resend = { action: `${ACCOUNT_PATH}/verification`, button: "Send the e-mail again" };
  return section(
    "profile",
    "Profile",
    html`${renderForm(form, rejected && isNameFault(rejected) ? rejected : null)}
<dl class="details">
<dt>E-mail</dt><dd>${email} ${isVerified ? html`<span class="good">confirmed</span>` : html`<span class="bad">not confirmed</span>`}</dd>
${username.toLowerCase() === email.toLowerCase() ? null : html`<dt>User name</dt><dd>${username}</dd>`}
<dt>Role</dt><dd><code>${role}</code></dd>
</dl>
${isVerified ? null : renderButton(session, resend)}
<p><a href="${ACCOUNT_PATH}/address">Change the e-mail address</a></p>`,
  );
}

function securitySection({ account, passkeyCount }: AccountDetails): Html {
  const { hasPassword, factorEnabledAt, backupCodes } = account;
  const since = factorEnabledAt === null ? null : html`<span class="good">on</span> since ${timeOf(factorEnabledAt)}`;
  return section(
    "security",
    "Signing in",
    html`<dl>
<dt>Password</dt><dd>${hasPassword ? html`<a href="${ACCOUNT_PATH}/password">Change the password</a>` : html`none: <a href="/auth/forgotten-password">set one by e-mail</a>`}</dd>
<dt>Passkeys</dt><dd>${passkeyCount === 0 ? "none" : passkeyCount}: <a href="${ACCOUNT_PATH}/passkeys">add and remove passkeys</a></dd>
<dt>Authenticator app</dt><dd>${since ?? "off"}: <a href="${ACCOUNT_PATH}/authenticator">${since ? "remove it" : "set it up"}</a></dd>
${since && html`<dt>Backup codes</dt><dd>${backupCodes} left: <a href="${ACCOUNT_PATH}/backup-codes">make new ones</a></dd>`}
</dl>`,
  );
}

function signInsSection(session: RequestSession, { signIns }: AccountDetails): Html {
  const others = signIns.filter(({ isCurrent }) => !isCurrent);
  const endAll = { action: `${ACCOUNT_PATH}/sign-ins`, hidden: { all: "true" }, button: "End all others" };
  return section(
    "sign-ins",
    "Where you are signed in",
    html`<ul class="rows">${signIns.map((signIn) => signInRow(session, signIn))}</ul>
${others.length === 0 ? null : renderButton(session, endAll)}
<p class="quiet">You have one session in a browser at a time: signing in to another ends this one.</p>`,
  );
}

function signInRow(session: RequestSession, signIn: SignIn): Html {
  const { familyId, isCurrent, signedInAt, lastUsedAt, address, userAgent } = signIn;
  const client = describeUserAgent(userAgent);
  const end = {
    action: `${ACCOUNT_PATH}/sign-ins`,
    hidden: { family: familyId ?? "" },
    button: "End",
    label: `End ${client}`,
  };
  return html`<li><div class="row"><strong>${client}</strong>${isCurrent ? html` <span class="good">this browser</span>` : null}
<span class="detail">${familyId === null ? "session" : "tokens"}${address === null ? null : html`, ${address}`}, since ${timeOf(signedInAt)}, last used ${timeOf(lastUsedAt)}</span></div>
${familyId === null ? null : renderButton(session, end)}</li>`;
}

function accessSection(session: RequestSession, { keyCount, linked, unlinked, grants }: AccountDetails): Html {
  return section(
    "access",
    "Other access",
    html`<dl><dt>API keys</dt><dd>${keyCount === 0 ? "none" : keyCount}: <a href="${ACCOUNT_PATH}/keys">make and revoke keys</a></dd></dl>
${applicationList(session, grants)}
${
  linked.length + unlinked.length === 0
    ? null
    : html`<h3>Providers to sign in with</h3><ul class="rows">
${linked.map((provider) => linkedRow(session, provider))}
${unlinked.map((provider) => unlinkedRow(session, provider))}</ul>`
}`,
  );
}

function linkedRow(session: RequestSession, { name, title, linkedAt, lastUsedAt }: LinkedProvider): Html {
  const unlink = { action: `${ACCOUNT_PATH}/providers/unlink`, hidden: { provider: name }, button: "Unlink" };
  return html`<li><div class="row"><strong>${title}</strong> <span class="detail">linked ${timeOf(linkedAt)}${lastUsedAt && html`, last used ${timeOf(lastUsedAt)}`}</span></div>
${renderButton(session, { ...unlink, label: `Unlink ${title}` })}</li>`;
}

function unlinkedRow(session: RequestSession, { name, title }: ProviderLink): Html {
  const link = { action: `${ACCOUNT_PATH}/providers/link`, hidden: { provider: name }, button: "Link" };
  return html`<li><div class="row"><strong>${title}</strong> <span class="detail">not linked</span></div>
${renderButton(session, { ...link, label: `Link ${title}` })}</li>`;
}

const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/\bEdgA?\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\b(Firefox|FxiOS)\//, "Firefox"],
  [/\b(Chrome|CriOS|HeadlessChrome)\//, "Chrome"],
  [/\bSafari\//, "Safari"],
];
const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\biPhone\b/, "iPhone"],
  [/\biPad\b/, "iPad"],
  [/\bAndroid\b/, "Android"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b/, "macOS"],
  [/\bCrOS\b/, "ChromeOS"],
  [/\bLinux\b/, "Linux"],
];
const MAX_LENGTH = 60;

/** Describes a user agent as `Firefox on Linux`, and programs by the beginning of their text. */
export function describeUserAgent(userAgent: string | null): string {
  if (userAgent === null || userAgent.trim() === "") return "Unknown client";
  const nameIn = (names: typeof BROWSERS) => names.find(([pattern]) => pattern.test(userAgent))?.[1] ?? null;
  const [browser, system] = [nameIn(BROWSERS), nameIn(SYSTEMS)];
  if (browser !== null) return system === null ? browser : `${browser} on ${system}`;
  return userAgent.length <= MAX_LENGTH ? userAgent : `${userAgent.slice(0, MAX_LENGTH)}…`;
}

import { type ApiKey, parseExpiryDate } from "#accounts/api-keys";
import { clientInfoOf, HttpError } from "#http";
import type { RequestSession } from "#rest-gateway/authenticate";
import { type Html, html, type PageContent, seeOther } from "#rest-gateway/pages";
import { type FormField, type HtmlForm, hiddenFields, timeOf } from "../pages/form-page.ts";
import { ACCOUNT_PATH, BACK_TO_ACCOUNT, continuePage } from "../pages/sign-in-pages.ts";
import { requireFields } from "../request/read-body.ts";
import {
  type AccountPageDependencies,
  CONFIRMATION_FIELD,
  confirmedForm,
  renderButton,
  returnToAccount,
  type SignedInPage,
} from "./signed-in-page.ts";

const KEYS_PATH = `${ACCOUNT_PATH}/keys`;
const KEY_FIELDS: readonly FormField[] = [
  { name: "name", label: "What it is for", type: "text", autocomplete: "off" },
  {
    name: "expires",
    label: "Expires on",
    type: "date",
    autocomplete: "off",
    hint: "At the beginning of this day (UTC); empty for never.",
    isOptional: true,
  },
  CONFIRMATION_FIELD,
];

/** Ends one sign-in by tokens, or all sign-ins but this session. */
export function signInsSubmission({ accounts: { own } }: AccountPageDependencies): SignedInPage["submit"] {
  return async ({ session, values, request }) => {
    const clientInfo = clientInfoOf(request);
    if (values.get("all") === "true") {
      await own.endOtherSignIns(session.userId, session.id, clientInfo);
      return returnToAccount("sign-ins");
    }
    await own.endTokenFamily(session.userId, requireFields(values, ["family"]).family, clientInfo);
    return returnToAccount("sign-in");
  };
}

/** The user's own keys. A key is shown once, in the response to the form. */
export function keysPage({ accounts, render }: AccountPageDependencies): SignedInPage {
  const { own, apiKeys, confirmPassword } = accounts;
  return {
    async show({ session, rejected }) {
      const [account, keys] = await Promise.all([own.read(session.userId), apiKeys.list({ ownerId: session.userId })]);
      const form: HtmlForm = {
        action: KEYS_PATH,
        fields: KEY_FIELDS,
        hidden: hiddenFields(session),
        button: "Make a key",
        takesFocus: rejected !== null,
      };
      const live = keys.filter(({ isLive }) => isLive);
      const content = html`<p>Programs send a key as <code>X-API-Key</code> and act as you, in the role <code>${account.role}</code>, without your password
or code.</p>
${live.length === 0 ? html`<p class="quiet">You have no keys.</p>` : html`<ul class="rows">${live.map((key) => keyRow(session, key))}</ul>`}
<h2>A new key</h2>
${confirmedForm(account, form, rejected)}${BACK_TO_ACCOUNT}`;
      return { title: "API keys", content };
    },
    async submit({ session: { userId }, values, request }) {
      const { name, password } = requireFields(values, ["name", "password"]);
      const key = { ownerId: userId, name, expiresAt: readExpiryDate(values.get("expires") ?? "") };
      const clientInfo = clientInfoOf(request);
      const made = await confirmPassword(userId, password, clientInfo, (client) =>
        apiKeys.createOwn(client, key, clientInfo),
      );
      return render(newKeyPage(made.key));
    },
  };
}

function readExpiryDate(text: string): Date | null {
  if (text === "") return null;
  const date = parseExpiryDate(text);
  if (date) return date;
  const message = "Give a date such as 2027-12-31.";
  throw new HttpError(400, "VALIDATION_ERROR", message, { details: [{ field: "expires", message }] });
}

function keyRow(session: RequestSession, { id, name, prefix, role, createdAt, expiresAt, lastUsedAt }: ApiKey): Html {
  const revoke = {
    action: `${KEYS_PATH}/revoke`,
    hidden: { key: id },
    button: "Revoke",
    label: `Revoke ${name || prefix}`,
  };
  return html`<li><div class="row"><strong>${name || "Without a name"}</strong> <code>${prefix}…</code>
<span class="detail"><code>${role}</code>, made ${timeOf(createdAt)}, ${expiresAt === null ? "never expires" : html`expires ${timeOf(expiresAt)}`},
${lastUsedAt === null ? "never used" : html`last used ${timeOf(lastUsedAt)}`}</span></div>
${renderButton(session, revoke)}</li>`;
}

function newKeyPage(key: string): PageContent {
  const content = html`<p>Store the key now: it is not shown again.</p><p><code>${key}</code></p>
<nav aria-label="Go on"><a href="${KEYS_PATH}">API keys</a><a href="${ACCOUNT_PATH}">Your account</a></nav>`;
  return { title: "Your new key", content };
}

export function revokeKeySubmission({ accounts: { apiKeys } }: AccountPageDependencies): SignedInPage["submit"] {
  return async ({ session: { userId }, values, request }) => {
    const { key } = requireFields(values, ["key"]);
    if (!/^[1-9]\d{0,17}$/.test(key)) throw new HttpError(400, "INVALID_ID", "The id of a key must be a whole number.");
    await apiKeys.revoke(key, { ownerId: userId, clientInfo: clientInfoOf(request) });
    return seeOther(KEYS_PATH);
  };
}

/** Starts to link a provider, by a page that leads to it, because our policy forbids forms a redirect there. */
export function linkSubmission({ startLink, render }: AccountPageDependencies): SignedInPage["submit"] {
  return async ({ session: { userId }, values, request }) => {
    const { provider } = requireFields(values, ["provider"]);
    const redirectTo = `${ACCOUNT_PATH}?done=linked`;
    const { address, headers } = await startLink(request, { provider, userId, redirectTo });
    const page = continuePage(address);
    return render({ ...page, headers: { ...page.headers, ...headers } });
  };
}

export function unlinkSubmission({ accounts: { own } }: AccountPageDependencies): SignedInPage["submit"] {
  return async ({ session: { userId }, values, request }) => {
    await own.unlinkProvider(userId, requireFields(values, ["provider"]).provider, clientInfoOf(request));
    return returnToAccount("unlinked");
  };
}

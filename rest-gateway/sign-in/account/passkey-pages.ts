import type { Passkey } from "#accounts";
import { clientInfoOf } from "#http";
import { type Html, html, seeOther } from "#rest-gateway/pages";
import { type FormField, type HtmlForm, hiddenFields, renderForm, timeOf } from "../pages/form-page.ts";
import { passkeyRequestPage, readPasskeyResponse } from "../pages/passkey-pages.ts";
import { ACCOUNT_PATH, BACK_TO_ACCOUNT } from "../pages/sign-in-pages.ts";
import { requireFields } from "../request/read-body.ts";
import {
  type AccountPageDependencies,
  CONFIRMATION_FIELD,
  confirmedForm,
  type SignedInPage,
  withoutForm,
} from "./signed-in-page.ts";

const PASSKEYS_PATH = `${ACCOUNT_PATH}/passkeys`;
const PASSKEY_PATH = `${PASSKEYS_PATH}/edit`;
const NAME_FIELD: FormField = { name: "name", label: "Name", type: "text", autocomplete: "off" };
const BACK_TO_PASSKEYS = html`<nav aria-label="Go on"><a href="${PASSKEYS_PATH}">Passkeys</a> <a href="${ACCOUNT_PATH}">Your account</a></nav>`;

/** The page with the list, and a new passkey in two submissions: the password, and the response of the authenticator. */
export function passkeysPage({ accounts, render }: AccountPageDependencies): SignedInPage {
  const { own, passkeys, confirmPassword } = accounts;
  return {
    async show({ session, rejected }) {
      const [account, list] = await Promise.all([own.read(session.userId), passkeys.list(session.userId)]);
      const form: HtmlForm = {
        action: PASSKEYS_PATH,
        fields: [{ ...NAME_FIELD, hint: "Such as the device that keeps it." }, CONFIRMATION_FIELD],
        hidden: hiddenFields(session),
        button: "Add a passkey",
        takesFocus: rejected !== null,
      };
      const content = html`<p>A passkey is kept by your device or security key. You sign in with it instead of your password and code.</p>
${list.length === 0 ? html`<p class="quiet">You have no passkeys.</p>` : html`<ul class="rows">${list.map(passkeyRow)}</ul>`}
<h2>A new passkey</h2>
${confirmedForm(account, form, rejected)}${BACK_TO_ACCOUNT}`;
      return { title: "Passkeys", content };
    },
    async submit({ session, values, request }) {
      const clientInfo = clientInfoOf(request);
      const response = readPasskeyResponse(values);
      const { name } = requireFields(values, ["name"]);
      if (response) {
        await passkeys.finishRegistration(session.userId, { ...response, friendlyName: name }, clientInfo);
        return seeOther(PASSKEYS_PATH);
      }
      const { password } = requireFields(values, ["password"]);
      await confirmPassword(session.userId, password, clientInfo, async () => {});
      const form = { title: "Add a passkey", action: PASSKEYS_PATH, hidden: { ...hiddenFields(session), name } };
      return render(
        passkeyRequestPage(form, "create", await passkeys.beginRegistration(session.userId), BACK_TO_PASSKEYS),
      );
    },
  };
}

function passkeyRow({ id, friendlyName, createdAt, lastUsedAt }: Passkey): Html {
  const name = nameOf(friendlyName);
  return html`<li><div class="row"><strong>${name}</strong>
<span class="detail">added ${timeOf(createdAt)}, ${lastUsedAt === null ? "never used" : html`last used ${timeOf(lastUsedAt)}`}</span></div>
<a href="${PASSKEY_PATH}?${new URLSearchParams({ passkey: id }).toString()}" aria-label="Change ${name}">Change</a></li>`;
}

/** Renames a passkey, or removes it. */
export function passkeyPage({ accounts }: AccountPageDependencies): SignedInPage {
  const { own, passkeys, confirmPassword } = accounts;
  return {
    async show({ session, values, rejected }) {
      const [account, list] = await Promise.all([own.read(session.userId), passkeys.list(session.userId)]);
      const passkey = list.find(({ id }) => id === values.get("passkey"));
      if (!passkey) {
        const content = html`${withoutForm(html`<p>It was removed.</p>`, rejected)}${BACK_TO_PASSKEYS}`;
        return { title: "Passkey not found", content, status: 404 };
      }
      const hidden = (step: string) => hiddenFields(session, { step, passkey: passkey.id });
      const isRemoval = values.get("step") === "remove";
      const rename: HtmlForm = {
        action: PASSKEY_PATH,
        fields: [{ ...NAME_FIELD, value: passkey.friendlyName }],
        hidden: hidden("rename"),
        button: "Save the name",
        takesFocus: !isRemoval,
      };
      const remove: HtmlForm = {
        action: PASSKEY_PATH,
        fields: [CONFIRMATION_FIELD],
        hidden: hidden("remove"),
        button: "Remove the passkey",
        takesFocus: isRemoval,
      };
      const content = html`${renderForm(rename, isRemoval ? null : rejected)}
<h2>Remove it</h2>
${confirmedForm(account, remove, isRemoval ? rejected : null)}${BACK_TO_PASSKEYS}`;
      return { title: nameOf(passkey.friendlyName), content };
    },
    async submit({ session: { userId }, values, request }) {
      const clientInfo = clientInfoOf(request);
      const { passkey, step } = requireFields(values, ["passkey", "step"]);
      if (step === "remove") {
        const { password } = requireFields(values, ["password"]);
        await confirmPassword(userId, password, clientInfo, async () => {});
        await passkeys.remove(userId, passkey, clientInfo);
      } else {
        await passkeys.rename(userId, passkey, requireFields(values, ["name"]).name);
      }
      return seeOther(PASSKEYS_PATH);
    },
  };
}

function nameOf(friendlyName: string): string {
  return friendlyName === "" ? "Passkey without a name" : friendlyName;
}

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { PasskeyChallenge } from "#accounts";
import { clientInfoOf, HttpError } from "#http";
import { type Html, html, type PageContent } from "#rest-gateway/pages";
import { alert, type FormPage, type HtmlForm, hiddenInputs, type PageDependencies, renderForm } from "./form-page.ts";
import { PASSKEY_SIGN_IN_PATH, redirectSignedIn, SIGN_IN_PATH, withRedirect } from "./sign-in-pages.ts";

const SCRIPT = readFileSync(join(import.meta.dirname, "use-passkey.js"), "utf8");

/** A page with two submissions: the first requests a passkey, and the script of that page submits it. */
export function passkeySignInPage({
  accounts: { passkeys, sessions },
  readTarget,
  render,
}: PageDependencies): FormPage {
  return {
    show(values, rejected) {
      const target = values.get("redirect_to");
      const form: HtmlForm = {
        action: PASSKEY_SIGN_IN_PATH,
        fields: [],
        hidden: { redirect_to: target },
        button: rejected ? "Try again" : "Go on",
      };
      // The values that were rejected are not shown again.
      const fault = rejected && alert([rejected.error.message, rejected.error.hint].filter(Boolean).join(" "));
      return { title: "Sign in with a passkey", content: html`${fault}${renderForm(form, null)}${otherWays(target)}` };
    },
    async submit(values, request) {
      const redirectTo = values.get("redirect_to");
      const target = readTarget(redirectTo);
      const response = readPasskeyResponse(values);
      if (response) {
        return redirectSignedIn(await passkeys.finishSignIn(response, clientInfoOf(request), sessions.open), target);
      }
      return render(
        passkeyRequestPage(
          { title: "Sign in with a passkey", action: PASSKEY_SIGN_IN_PATH, hidden: { redirect_to: redirectTo } },
          "get",
          await passkeys.beginSignIn(),
          otherWays(redirectTo),
        ),
      );
    },
  };
}

function otherWays(target: string | null): Html {
  return html`<nav aria-label="Other ways"><a href="${withRedirect(SIGN_IN_PATH, target)}">Sign in another way</a></nav>`;
}

type PasskeyForm = {
  readonly title: string;
  readonly action: string;
  readonly hidden: Readonly<Record<string, string | null>>;
};

/** A page whose script calls the authenticator at once: `create` for a new passkey, `get` for one that exists. */
export function passkeyRequestPage(
  { title, action, hidden }: PasskeyForm,
  step: "create" | "get",
  { challengeId, options }: PasskeyChallenge<object>,
  after: Html,
): PageContent {
  const content = html`<p>Confirm with your device or security key that it is you.</p>
<p class="alert" role="alert" id="failure" hidden></p>
<noscript><p class="alert">Passkeys require JavaScript.</p></noscript>
<form method="post" action="${action}" id="passkey" data-step="${step}" data-options="${JSON.stringify(options)}">
${hiddenInputs({ ...hidden, challenge: challengeId, credential: "" })}
<button type="submit">Ask again</button></form>${after}`;
  return { title, content, script: SCRIPT };
}

/** Reads the response; null if the form contains none, because it requests a passkey. */
export function readPasskeyResponse(values: URLSearchParams): { challengeId: string; credential: unknown } | null {
  const credential = values.get("credential") ?? "";
  if (credential === "") return null;
  try {
    return { challengeId: values.get("challenge") ?? "", credential: JSON.parse(credential) };
  } catch {
    throw new HttpError(400, "VALIDATION_ERROR", "The response of the passkey is not JSON.");
  }
}

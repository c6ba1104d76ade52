import type { AccountSummary } from "#accounts";
import type { GatewayHandler, GatewayRequest, GatewayResponse } from "#http";
import { findSession, type RequestSession } from "#rest-gateway/authenticate";
import { type Html, html, type PageContent, seeOther } from "#rest-gateway/pages";
import type { OAuthStore } from "../oauth/oauth-store.ts";
import {
  alert,
  type FormField,
  type HtmlForm,
  hiddenFields,
  hiddenInputs,
  type PageDependencies,
  type RejectedForm,
  renderForm,
  renderRejected,
} from "../pages/form-page.ts";
import { ACCOUNT_PATH, leadToSignIn, PASSWORD_FIELD, SIGN_IN_PATH, withRedirect } from "../pages/sign-in-pages.ts";
import { readForm } from "../request/read-body.ts";

/** Starts to link a provider to a signed-in user; returns the address to send the browser to. */
export type StartLink = (
  request: GatewayRequest,
  link: { readonly provider: string; readonly userId: string; readonly redirectTo: string },
) => Promise<{ readonly address: string; readonly headers: GatewayResponse["headers"] }>;

export type AccountPageDependencies = PageDependencies & {
  readonly startLink: StartLink;
  /** The store; null if applications cannot act for users. */
  readonly oauthStore: OAuthStore | null;
};

type SignedInView = {
  readonly session: RequestSession;
  readonly values: URLSearchParams;
  readonly rejected: RejectedForm | null;
};

type Submission = {
  readonly session: RequestSession;
  readonly values: URLSearchParams;
  readonly request: GatewayRequest;
};

/** A page of the signed-in user. Its forms have the CSRF token of the session. */
export type SignedInPage = {
  show(view: SignedInView): PageContent | Promise<PageContent>;
  submit(submission: Submission): Promise<GatewayResponse>;
};

/** The current password, which protects an account whose browser is left open. */
export const CONFIRMATION_FIELD: FormField = { ...PASSWORD_FIELD, label: "Your current password" };

const NO_PASSWORD = html`<p>This requires a password, and your account has none: you sign in through a provider.
<a href="/auth/forgotten-password">Set a password</a> first, by a link in an e-mail.</p>`;

/** Returns the form; for an account without a password, the reason why there is none. */
export function confirmedForm(
  { hasPassword }: Pick<AccountSummary, "hasPassword">,
  form: HtmlForm,
  rejected: RejectedForm | null,
): Html {
  return hasPassword ? renderForm(form, rejected) : withoutForm(NO_PASSWORD, rejected);
}

/** Returns the content of a page without its form. */
export function withoutForm(reason: Html, rejected: RejectedForm | null): Html {
  return html`${rejected && alert(rejected.error.message)}${reason}`;
}

/** Returns GET and POST handlers. Without a session, they redirect to the sign-in page. */
export function signedInHandlers(
  { show, submit }: SignedInPage,
  { accounts, csrf, render }: PageDependencies,
): Readonly<Record<"GET" | "POST", GatewayHandler>> {
  return {
    GET: async (request) => {
      const session = await findSession(request, accounts.sessions);
      if (session)
        return render(await show({ session, values: new URLSearchParams(request.rawQuery), rejected: null }));
      return leadToSignIn(request, render);
    },
    POST: async (request) => {
      const values = await readForm(request);
      const session = await findSession(request, accounts.sessions);
      if (!session) return seeOther(withRedirect(SIGN_IN_PATH, ACCOUNT_PATH));
      try {
        csrf.checkForm(request, session.id, values.get("csrf"));
        return await submit({ session, values, request });
      } catch (thrown) {
        return renderRejected(thrown, values, render, (rejected) => show({ session, values, rejected }));
      }
    },
  };
}

/** Redirects to the account page with one of its messages, so that reloading the page does not submit the form again. */
export function returnToAccount(done: string, headers: GatewayResponse["headers"] = {}): GatewayResponse {
  return seeOther(`${ACCOUNT_PATH}?${new URLSearchParams({ done })}`, headers);
}

type ButtonForm = {
  readonly action: string;
  readonly hidden?: Readonly<Record<string, string>>;
  readonly button: string;
  /** The label for screen readers, if several buttons have the same text. */
  readonly label?: string;
};

/** A form that consists of one button. */
export function renderButton(
  session: RequestSession,
  { action, hidden = {}, button, label = button }: ButtonForm,
): Html {
  const fields = hiddenInputs(hiddenFields(session, hidden));
  return html`<form method="post" action="${action}" class="inline">${fields}<button type="submit" aria-label="${label}">${button}</button></form>`;
}

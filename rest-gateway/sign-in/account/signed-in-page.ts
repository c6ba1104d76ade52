import type { AccountSummary } from "#accounts";
import { csrfTokenOf, type GatewayHandler, type GatewayRequest, type GatewayResponse } from "#http";
import { findSession, type Html, html, type PageContent, type RequestSession, seeOther } from "#rest-gateway";
import {
  alert,
  type FormField,
  type HtmlForm,
  hiddenInputs,
  type PageDependencies,
  type RejectedForm,
  renderForm,
  renderRejected,
} from "../form-page.ts";
import type { OAuthStore } from "../oauth/oauth-store.ts";
import { readForm } from "../read-body.ts";
import { ACCOUNT_PATH, continuePage, PASSWORD_FIELD, SIGN_IN_PATH, withRedirect } from "../sign-in-pages.ts";

/** Starts to link a provider to a signed-in user; returns the address to send the browser to. */
export type StartLink = (
  request: GatewayRequest,
  link: { readonly provider: string; readonly userId: string; readonly redirectTo: string },
) => Promise<{ readonly address: string; readonly headers: GatewayResponse["headers"] }>;

export type AccountPageDependencies = PageDependencies & {
  readonly startLink: StartLink;
  /** Null where applications cannot act for users. */
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

export const BACK_TO_ACCOUNT = html`<nav aria-label="Go on"><a href="${ACCOUNT_PATH}">Your account</a></nav>`;

/** The current password, which protects an account whose browser is left open. */
export const CONFIRMATION_FIELD: FormField = { ...PASSWORD_FIELD, label: "Your current password" };

const NO_PASSWORD = html`<p>This requires a password, and your account has none: you sign in through a provider.
<a href="/auth/forgotten-password">Set a password</a> first, by a link in an e-mail.</p>`;

/** The form; or, for an account without a password, why there is none. */
export function confirmedForm(
  { hasPassword }: Pick<AccountSummary, "hasPassword">,
  form: HtmlForm,
  rejected: RejectedForm | null,
): Html {
  return hasPassword ? renderForm(form, rejected) : withoutForm(NO_PASSWORD, rejected);
}

/** What a page has in place of its form. */
export function withoutForm(reason: Html, rejected: RejectedForm | null): Html {
  return html`${rejected && alert(rejected.error.message)}${reason}`;
}

/** GET and POST handlers. Without a session, they lead to the sign-in page. */
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

/** Of a page that needs a session, and that the browser comes back to. */
export function leadToSignIn(
  { path, rawQuery, headers }: GatewayRequest,
  render: PageDependencies["render"],
): GatewayResponse {
  const address = rawQuery === "" ? path : `${path}?${rawQuery}`;
  // Browsers do not send Strict cookies after a link or a redirect from another site; a page of this site loads it again.
  if (headers["sec-fetch-site"] === "cross-site") return render(continuePage(address));
  return seeOther(withRedirect(SIGN_IN_PATH, address));
}

/** The hidden fields of a form. */
export function hiddenFields({ id }: RequestSession, others: Readonly<Record<string, string>> = {}) {
  return { csrf: csrfTokenOf(id), ...others };
}

/** Leads to the account page with one of its messages, so that loading the page again does not submit the form again. */
export function returnToAccount(done: string, headers: GatewayResponse["headers"] = {}): GatewayResponse {
  return seeOther(`${ACCOUNT_PATH}?${new URLSearchParams({ done })}`, headers);
}

export function timeOf(moment: Date): Html {
  const text = moment.toISOString();
  return html`<time datetime="${text}">${text.slice(0, 16).replace("T", " ")} UTC</time>`;
}

type ButtonForm = {
  readonly action: string;
  readonly hidden?: Readonly<Record<string, string>>;
  readonly button: string;
  /** For screen readers, where several buttons have the same text. */
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

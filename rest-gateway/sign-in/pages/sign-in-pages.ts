import { type NewSession, signInAgain } from "#accounts";
import { readRedirectTarget } from "#accounts/federation";
import { LIFETIMES } from "#accounts/identity";
import {
  clearSessionCookie,
  clientInfoOf,
  csrfTokenOf,
  type GatewayHandler,
  type GatewayRequest,
  type GatewayResponse,
  type GatewayRoutes,
  setSessionCookie,
} from "#http";
import { type RequestHeaders, readCookie } from "#http/request-info";
import { findSession, type RequestSession } from "#rest-gateway/authenticate";
import { type Html, html, type PageContent, seeOther } from "#rest-gateway/pages";
import { requireFields } from "../request/read-body.ts";
import {
  alert,
  type FormField,
  type FormPage,
  formHandlers,
  type HtmlForm,
  hiddenInputs,
  isolatedName,
  type PageDependencies,
  renderForm,
} from "./form-page.ts";

const PENDING_COOKIE = "SIGNING_IN";
const PENDING_COOKIE_ATTRIBUTES = "Path=/auth/sign-in; HttpOnly; Secure; SameSite=Strict";

export const SIGN_IN_PATH = "/auth/sign-in";
/** The page after a sign-in without another target. */
export const ACCOUNT_PATH = "/auth/account";
export const PASSKEY_SIGN_IN_PATH = "/auth/sign-in/passkey";
const CODE_PATH = "/auth/sign-in/code";
export const SIGN_OUT_PATH = "/auth/sign-out";

export const BACK_TO_ACCOUNT = html`<nav aria-label="Go on"><a href="${ACCOUNT_PATH}">Your account</a></nav>`;

const USERNAME_FIELD: FormField = {
  name: "username",
  label: "E-mail address or user name",
  type: "text",
  autocomplete: "username",
};
export const PASSWORD_FIELD: FormField = {
  name: "password",
  label: "Password",
  type: "password",
  autocomplete: "current-password",
};
export const CODE_FIELD: FormField = {
  name: "code",
  label: "Code",
  type: "text",
  autocomplete: "one-time-code",
  hint: "Six digits of your authenticator app, or a backup code.",
};

/** Pages for password, code and sign-out, with links to identity providers. */
export function signInPages(services: PageDependencies): GatewayRoutes {
  const { accounts, render } = services;
  const password = formHandlers(passwordPage(services), services);
  const showSession: GatewayHandler = async (request) => {
    const session = await findSession(request, accounts.sessions);
    return session ? render(signedInPage(session)) : password.GET(request);
  };
  return {
    [SIGN_IN_PATH]: { GET: showSession, POST: password.POST },
    [CODE_PATH]: formHandlers(codePage(services), services),
    [SIGN_OUT_PATH]: formHandlers(signOutPage(services), services),
  };
}

function passwordPage({ accounts: { mfaLogin, sessions }, providers, readTarget }: PageDependencies): FormPage {
  return {
    async show(values, rejected) {
      const target = values.get("redirect_to");
      const form: HtmlForm = {
        action: SIGN_IN_PATH,
        fields: [USERNAME_FIELD, PASSWORD_FIELD],
        hidden: { redirect_to: target },
        button: "Sign in",
      };
      const others = (await providers()).map(
        ({ name, title }) =>
          html`<a class="button" href="${withRedirect(`/auth/providers/${name}/sign-in`, target)}">Sign in with ${title}</a>`,
      );
      return {
        title: "Sign in",
        content: html`${renderForm(form, rejected)}
          <p class="or">or</p>${passkeyButton(target)}${others}
          <nav aria-label="Other ways">
            <a href="${withRedirect("/auth/sign-up", target)}">Create an account</a>
            <a href="/auth/forgotten-password">Forgotten your password?</a>
          </nav>`,
      };
    },
    async submit(values, request) {
      const target = readTarget(values.get("redirect_to"));
      const credentials = requireFields(values, ["username", "password"]);
      const step = await mfaLogin.begin(credentials, clientInfoOf(request), sessions.open);
      if (step.kind === "opened") return redirectSignedIn(step.opened, target);
      return seeOther(withRedirect(CODE_PATH, values.get("redirect_to")), {
        "Set-Cookie": setPendingCookie(step.pending),
      });
    },
  };
}

function codePage({ accounts: { mfaLogin, sessions }, readTarget }: PageDependencies): FormPage {
  return {
    show(values, rejected) {
      const target = values.get("redirect_to");
      const hidden = { redirect_to: target };
      const form: HtmlForm = { action: CODE_PATH, fields: [CODE_FIELD], hidden, button: "Go on" };
      const back = html`<nav aria-label="Other ways"><a href="${withRedirect(SIGN_IN_PATH, target)}">Begin again</a></nav>`;
      return {
        title: "One more step",
        content: html`${renderForm(form, rejected)}<p class="or">or</p>${passkeyButton(target)}${back}`,
      };
    },
    async submit(values, request) {
      const target = readTarget(values.get("redirect_to"));
      const { code } = requireFields(values, ["code"]);
      const pending = readPendingCookie(request.headers);
      if (pending === null) throw signInAgain();
      return redirectSignedIn(await mfaLogin.finish(pending, code, clientInfoOf(request), sessions.open), target);
    },
  };
}

/** A button for a passkey, which proves both factors. */
function passkeyButton(target: string | null): Html {
  return html`<form method="post" action="${PASSKEY_SIGN_IN_PATH}">${hiddenInputs({ redirect_to: target })}
<button type="submit" class="button">Sign in with a passkey</button></form>`;
}

function signOutPage({ accounts: { sessions }, csrf }: PageDependencies): FormPage {
  return {
    show(_values, rejected) {
      const fault = rejected && alert(rejected.error.message);
      return { title: "Sign out", content: html`${fault}<p><a href="${SIGN_IN_PATH}">Go back</a></p>` };
    },
    async submit(values, request) {
      const session = await findSession(request, sessions);
      if (!session) return seeOther(SIGN_IN_PATH);
      csrf.checkForm(request, session.id, values.get("csrf"));
      await sessions.close(session.id, clientInfoOf(request));
      return seeOther(SIGN_IN_PATH, clearSessionCookie());
    },
  };
}

export function redirectSignedIn({ id }: NewSession, target: string | null): GatewayResponse {
  return seeOther(target ?? ACCOUNT_PATH, {
    "Set-Cookie": [setSessionCookie(id)["Set-Cookie"]!, clearPendingCookie()],
  });
}

function signedInPage({ id, username }: RequestSession): PageContent {
  const form: HtmlForm = {
    action: SIGN_OUT_PATH,
    fields: [],
    hidden: { csrf: csrfTokenOf(id) },
    button: "Sign out",
  };
  return { title: "Signed in", content: signedInContent(username, renderForm(form, null)) };
}

export function signedInContent(username: string, signOut: Html | null): Html {
  return html`<p>You are signed in as ${isolatedName(username)}.</p>${signOut}
    <nav aria-label="Go on"><a href="${ACCOUNT_PATH}">Your account</a> <a href="/">Start page</a></nav>`;
}

/** Loads an address from a page of this site, because browsers send no Strict cookies with navigations from other sites. */
export function continuePage(address: string): PageContent {
  const content = html`<p><a href="${address}">Go on</a></p>`;
  return { title: "One moment", content, headers: { Refresh: `0; url=${address}` } };
}

/** Returns the response of a page that needs a session. The browser returns to it after the sign-in. */
export function leadToSignIn(
  { path, rawQuery, headers }: GatewayRequest,
  render: PageDependencies["render"],
): GatewayResponse {
  const address = rawQuery === "" ? path : `${path}?${rawQuery}`;
  // Browsers do not send Strict cookies after a link or a redirect from another site; a page of this site loads it again.
  if (headers["sec-fetch-site"] === "cross-site") return render(continuePage(address));
  return seeOther(withRedirect(SIGN_IN_PATH, address));
}

export function withRedirect(path: string, target: string | null): string {
  return target === null ? path : `${path}?${new URLSearchParams({ redirect_to: target })}`;
}

/** Validates the redirect after a sign-in. Own URLs become paths, because the cookie belongs to the host name that the browser uses. */
export function readPageRedirect(text: string | null, siteUrl: string, allowed: readonly string[]): string | null {
  const target = readRedirectTarget({ text: text || null, field: "redirect_to" }, siteUrl, allowed);
  if (target === null) return null;
  const { origin, pathname, search, hash } = new URL(target);
  // A path that begins with two slashes would be another host.
  const isPath = origin === new URL(siteUrl).origin && !pathname.startsWith("//");
  return isPath ? pathname + search + hash : target;
}

/** Reads the cookie of the pending login, between password and code. */
function readPendingCookie({ cookie }: RequestHeaders): string | null {
  return readCookie(cookie, PENDING_COOKIE);
}

function setPendingCookie(pending: string): string {
  return `${PENDING_COOKIE}=${pending}; ${PENDING_COOKIE_ATTRIBUTES}; Max-Age=${LIFETIMES.pendingSignIn}`;
}

function clearPendingCookie(): string {
  return `${PENDING_COOKIE}=; ${PENDING_COOKIE_ATTRIBUTES}; Max-Age=0`;
}

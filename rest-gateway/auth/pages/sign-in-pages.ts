import { signInAgain } from "../../../engine/auth/auth-errors.ts";
import type { NewSession } from "../../../engine/auth/sessions.ts";
import { crossSiteToken } from "../../../engine/caller/cross-site.ts";
import { forgetSession, keepSession } from "../../../engine/caller/session-cookie.ts";
import type { Routes } from "../../gateway.ts";
import type { GatewayResponse, Handler } from "../../http.ts";
import { type Html, html } from "../../pages/html.ts";
import { type Page, seeOther } from "../../pages/page.ts";
import { clientInfoOf } from "../client-info.ts";
import { findSession, type RequestSession } from "../request-session.ts";
import { type FormPage, formHandlers } from "./form-handlers.ts";
import type { PageDependencies } from "./page-dependencies.ts";
import { clearPendingCookie, readPendingCookie, setPendingCookie } from "./pending-cookie.ts";
import { requireFields } from "./read-form.ts";
import { alert, type FormField, type HtmlForm, renderForm } from "./render-form.ts";

export const SIGN_IN_PATH = "/auth/sign-in";
const CODE_PATH = "/auth/sign-in/code";
const SIGN_OUT_PATH = "/auth/sign-out";

const USERNAME: FormField = {
  name: "username",
  label: "E-mail address or user name",
  type: "text",
  autocomplete: "username",
};
const PASSWORD: FormField = {
  name: "password",
  label: "Password",
  type: "password",
  autocomplete: "current-password",
};
const CODE_FIELD: FormField = {
  name: "code",
  label: "Code",
  type: "text",
  autocomplete: "one-time-code",
  hint: "Six digits of your authenticator app, or a backup code.",
};

/** Pages for password, code and sign-out, with links to identity providers. */
export function signInPages(services: PageDependencies): Routes {
  const { accounts, crossSite, render, readTarget, providers } = services;
  const { mfaLogin, sessions } = accounts;

  const redirectSignedIn = ({ id }: NewSession, target: string | null): GatewayResponse =>
    seeOther(target ?? SIGN_IN_PATH, { "Set-Cookie": [keepSession(id)["Set-Cookie"]!, clearPendingCookie()] });

  const passwordPage: FormPage = {
    async show(values, refused) {
      const target = values.get("redirect_to");
      const hidden = { redirect_to: target };
      const form: HtmlForm = { action: SIGN_IN_PATH, fields: [USERNAME, PASSWORD], hidden, button: "Sign in" };
      const others = (await providers()).map(
        ({ name, title }) =>
          html`<a class="button" href="${withRedirect(`/auth/providers/${name}/sign-in`, target)}">Sign in with ${title}</a>`,
      );
      return {
        title: "Sign in",
        content: html`${renderForm(form, refused)}
          ${others.length > 0 ? html`<p class="or">or</p>${others}` : null}
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

  const codePage: FormPage = {
    show(values, refused) {
      const target = values.get("redirect_to");
      const hidden = { redirect_to: target };
      const form: HtmlForm = { action: CODE_PATH, fields: [CODE_FIELD], hidden, button: "Go on" };
      const back = html`<nav aria-label="Other ways"><a href="${withRedirect(SIGN_IN_PATH, target)}">Begin again</a></nav>`;
      return { title: "One more step", content: html`${renderForm(form, refused)}${back}` };
    },
    async submit(values, request) {
      const target = readTarget(values.get("redirect_to"));
      const { code } = requireFields(values, ["code"]);
      const pending = readPendingCookie(request.headers);
      if (pending === null) throw signInAgain();
      return redirectSignedIn(await mfaLogin.finish(pending, code, clientInfoOf(request), sessions.open), target);
    },
  };

  const password = formHandlers(passwordPage, services);
  const showSession: Handler = async (request) => {
    const session = await findSession(request, sessions);
    return session ? render(signedInPage(session)) : password.GET(request);
  };

  return {
    [SIGN_IN_PATH]: { GET: showSession, POST: password.POST },
    [CODE_PATH]: formHandlers(codePage, services),
    [SIGN_OUT_PATH]: formHandlers(
      {
        show: (_values, refused) => {
          const fault = refused && alert(refused.error.message);
          return { title: "Sign out", content: html`${fault}<p><a href="${SIGN_IN_PATH}">Go back</a></p>` };
        },
        async submit(values, request) {
          const session = await findSession(request, sessions);
          if (!session) return seeOther(SIGN_IN_PATH);
          crossSite.guardForm(request, session.id, values.get("csrf"));
          await sessions.close(session.id, clientInfoOf(request));
          return seeOther(SIGN_IN_PATH, forgetSession());
        },
      },
      services,
    ),
  };
}

function signedInPage({ id, username }: RequestSession): Page {
  const form: HtmlForm = {
    action: SIGN_OUT_PATH,
    fields: [],
    hidden: { csrf: crossSiteToken(id) },
    button: "Sign out",
  };
  const content: Html = html`<p>You are signed in as <strong>${username}</strong>.</p>${renderForm(form, null)}`;
  return { title: "Signed in", content };
}

/** Adds the redirect to a path. */
export function withRedirect(path: string, target: string | null): string {
  return target === null ? path : `${path}?${new URLSearchParams({ redirect_to: target })}`;
}

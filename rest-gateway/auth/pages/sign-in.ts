import { signInAgain } from "../../../engine/auth/refusals.ts";
import type { OpenedSession } from "../../../engine/auth/sessions.ts";
import { crossSiteToken } from "../../../engine/caller/cross-site.ts";
import { forgetSession, keepSession } from "../../../engine/caller/session-cookie.ts";
import type { Routes } from "../../gateway.ts";
import type { GatewayResponse, Handler } from "../../http.ts";
import { type Html, html } from "../../pages/html.ts";
import { type Page, seeOther } from "../../pages/page.ts";
import { senderOf } from "../sender.ts";
import { findSession, type ShownSession } from "../shown-session.ts";
import { alert, type Form, type FormField, renderForm } from "./form.ts";
import { forgetPending, keepPending, readPending } from "./pending-cookie.ts";
import { requireFields } from "./read-form.ts";
import type { PageServices } from "./services.ts";
import { type FormPage, formHandlers } from "./submit.ts";

export const SIGN_IN = "/auth/sign-in";
const CODE = "/auth/sign-in/code";
const SIGN_OUT = "/auth/sign-out";

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
  hint: "Six digits of your authenticator app, or one of your backup codes.",
};

/** The password, then a code where the account asks for one; or another provider. */
export function signInPages(services: PageServices): Routes {
  const { accounts, crossSite, render, readTarget, providers } = services;
  const { steppedLogin, sessions } = accounts;

  const arrive = ({ id }: OpenedSession, target: string | null): GatewayResponse =>
    seeOther(target ?? SIGN_IN, { "Set-Cookie": [keepSession(id)["Set-Cookie"]!, forgetPending()] });

  const passwordPage: FormPage = {
    async show(values, refused) {
      const target = values.get("redirect_to");
      const hidden = { redirect_to: target };
      const form: Form = { action: SIGN_IN, fields: [USERNAME, PASSWORD], hidden, button: "Sign in" };
      const others = (await providers()).map(
        ({ name, title }) =>
          html`<a class="button" href="${withTarget(`/auth/providers/${name}/sign-in`, target)}">Sign in with ${title}</a>`,
      );
      return {
        title: "Sign in",
        content: html`${renderForm(form, refused)}
          ${others.length > 0 ? html`<p class="or">or</p>${others}` : null}
          <nav aria-label="Other ways">
            <a href="${withTarget("/auth/sign-up", target)}">Create an account</a>
            <a href="/auth/forgotten-password">Forgotten your password?</a>
          </nav>`,
      };
    },
    async take(values, request) {
      const target = readTarget(values.get("redirect_to"));
      const credentials = requireFields(values, ["username", "password"]);
      const step = await steppedLogin.begin(credentials, senderOf(request), sessions.open);
      if (step.kind === "opened") return arrive(step.opened, target);
      return seeOther(withTarget(CODE, values.get("redirect_to")), { "Set-Cookie": keepPending(step.pending) });
    },
  };

  const codePage: FormPage = {
    show(values, refused) {
      const target = values.get("redirect_to");
      const hidden = { redirect_to: target };
      const form: Form = { action: CODE, fields: [CODE_FIELD], hidden, button: "Go on" };
      const back = html`<nav aria-label="Other ways"><a href="${withTarget(SIGN_IN, target)}">Begin again</a></nav>`;
      return { title: "One more step", content: html`${renderForm(form, refused)}${back}` };
    },
    async take(values, request) {
      const target = readTarget(values.get("redirect_to"));
      const { code } = requireFields(values, ["code"]);
      const pending = readPending(request.headers);
      if (pending === null) throw signInAgain();
      return arrive(await steppedLogin.finish(pending, code, senderOf(request), sessions.open), target);
    },
  };

  const password = formHandlers(passwordPage, services);
  const showWho: Handler = async (request) => {
    const session = await findSession(request, sessions);
    return session ? render(signedInPage(session)) : password.GET(request);
  };

  return {
    [SIGN_IN]: { GET: showWho, POST: password.POST },
    [CODE]: formHandlers(codePage, services),
    [SIGN_OUT]: formHandlers(
      {
        show: (_values, refused) => {
          const fault = refused && alert(refused.error.message);
          return { title: "Sign out", content: html`${fault}<p><a href="${SIGN_IN}">Go back</a></p>` };
        },
        async take(values, request) {
          const session = await findSession(request, sessions);
          if (!session) return seeOther(SIGN_IN);
          crossSite.guardForm(request, session.id, values.get("csrf"));
          await sessions.close(session.id, senderOf(request));
          return seeOther(SIGN_IN, forgetSession());
        },
      },
      services,
    ),
  };
}

function signedInPage({ id, username }: ShownSession): Page {
  const form: Form = { action: SIGN_OUT, fields: [], hidden: { csrf: crossSiteToken(id) }, button: "Sign out" };
  const content: Html = html`<p>You are signed in as <strong>${username}</strong>.</p>${renderForm(form, null)}`;
  return { title: "Signed in", content };
}

/** The same page, for who is to end there. */
export function withTarget(path: string, target: string | null): string {
  return target === null ? path : `${path}?${new URLSearchParams({ redirect_to: target })}`;
}

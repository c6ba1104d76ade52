import { type CsrfProtection, clientInfoOf, type GatewayRequest, type GatewayRoutes, withoutCaching } from "#http";
import { findSession, type RequestSession } from "#rest-gateway/authenticate";
import { type Html, html, makeRenderPage, type PageContent, seeOther } from "#rest-gateway/pages";
import {
  alert,
  formActionSource,
  hiddenFields,
  hiddenInputs,
  isolatedName,
  renderRejected,
  timeOf,
} from "../pages/form-page.ts";
import {
  ACCOUNT_PATH,
  BACK_TO_ACCOUNT,
  leadToSignIn,
  SIGN_IN_PATH,
  SIGN_OUT_PATH,
  withRedirect,
} from "../pages/sign-in-pages.ts";
import { readForm } from "../request/read-body.ts";
import { CONSENT_PATH } from "./authorize-routes.ts";
import { approve, type Decision, deny, openDecision } from "./decisions.ts";
import { describeAccess } from "./describe-access.ts";
import type { OAuthServices } from "./oauth-services.ts";

type ConsentServices = OAuthServices & { readonly csrf: CsrfProtection };

const SECONDS_PER_DAY = 86_400;

/**
 * Routes for the page where the user decides about a request for access. It cannot be framed, and its form has the token of the session:
 * no other page can decide in the user's name.
 */
export function consentRoutes(services: ConsentServices): GatewayRoutes {
  const { accounts, csrf } = services;
  const render = makeRenderPage({ formTargets: [] });

  const show = async (request: GatewayRequest) => {
    const session = await findSession(request, accounts.sessions);
    if (!session) return leadToSignIn(request, render);
    const values = new URLSearchParams(request.rawQuery);
    try {
      const decision = await decisionOf(values, session, services);
      if (decision.isGranted) return seeOther(await approveBy(session, decision, request, services));
      return render(consentPage(session, decision, services));
    } catch (thrown) {
      return renderRejected(thrown, values, render, ({ error }) => refusalPage(session, error.message));
    }
  };

  const decide = async (request: GatewayRequest) => {
    const values = await readForm(request);
    const session = await findSession(request, accounts.sessions);
    if (!session) return seeOther(withRedirect(SIGN_IN_PATH, ACCOUNT_PATH));
    try {
      csrf.checkForm(request, session.id, values.get("csrf"));
      const decision = await decisionOf(values, session, services);
      const isApproved = values.get("action") === "approve";
      return seeOther(
        isApproved
          ? await approveBy(session, decision, request, services)
          : await deny(decision, session.userId, services),
      );
    } catch (thrown) {
      return renderRejected(thrown, values, render, ({ error }) => refusalPage(session, error.message));
    }
  };

  return withoutCaching({ [CONSENT_PATH]: { GET: show, POST: decide } });
}

function decisionOf(values: URLSearchParams, { userId }: RequestSession, services: OAuthServices): Promise<Decision> {
  return openDecision(values.get("authorization_id") ?? "", userId, services);
}

function approveBy(
  { userId, signedInAt }: RequestSession,
  decision: Decision,
  request: GatewayRequest,
  services: OAuthServices,
): Promise<string> {
  return approve(decision, { userId, signedInAt }, services, clientInfoOf(request));
}

function consentPage(session: RequestSession, decision: Decision, services: OAuthServices): PageContent {
  const { request, client } = decision;
  const { grantDays, role } = { grantDays: services.config.oauthGrantDays, role: String(session.claims.role) };
  const until = new Date(Date.now() + grantDays * SECONDS_PER_DAY * 1000);
  const access = describeAccess(request.scopes, role, services.catalog());
  const hidden = hiddenInputs(hiddenFields(session, { authorization_id: request.id }));
  const content = html`<p><strong>${isolatedName(client.name)}</strong> asks for access to your account <strong>${isolatedName(session.username)}</strong>.</p>
${originOf(decision)}
<h2>What it may do</h2>
<ul class="rows">${access.map(({ title, detail }) => html`<li><div class="row"><strong>${title}</strong>${detail}</div></li>`)}</ul>
${role === "admin" ? html`<p class="alert">You are an administrator: it would act with your rights.</p>` : null}
<p>It keeps this access for ${grantDays === 1 ? "one day" : `${grantDays} days`} at most, until ${timeOf(until)}. You can withdraw it at any time <a href="${ACCOUNT_PATH}">on your account page</a>.</p>
<form method="post" action="${CONSENT_PATH}">${hidden}
<button type="submit" name="action" value="approve">Give access</button>
<button type="submit" name="action" value="deny" class="button">Refuse</button>
</form>
${signOutForm(session)}`;
  return { title: "Give access to your account?", content, formTargets: [formActionSource(request.redirect_uri)] };
}

/** Shows the source of the name, and the target of the redirect, since anybody can choose any name. */
function originOf({ client, request }: Decision): Html {
  const { protocol, hostname, host } = new URL(request.redirect_uri);
  const isLocal = protocol === "http:";
  const target =
    protocol === "https:"
      ? html`the site <strong>${host}</strong>`
      : html`${isLocal ? "a program" : "an app"} on this device (<code>${isLocal ? hostname : protocol}</code>)`;
  const next = html`<p>After your answer you go to ${target}.</p>`;
  if (client.registration === "manual") return next;
  const source =
    client.registration === "document"
      ? html`It is described at <strong>${new URL(client.id).host}</strong>.`
      : html`It has registered itself.`;
  return html`${next}<p>${source} Nobody here has checked its name. Give access only if you have just begun this yourself, in an application that you trust.</p>`;
}

function signOutForm(session: RequestSession): Html {
  return html`<form method="post" action="${SIGN_OUT_PATH}" class="inline">${hiddenInputs(hiddenFields(session))}<button type="submit">Use another account</button></form>`;
}

function refusalPage(session: RequestSession, message: string): PageContent {
  const content = html`${alert(message)}<p>You are signed in as ${isolatedName(session.username)}.</p>
${BACK_TO_ACCOUNT}`;
  return { title: "No access was given", content };
}

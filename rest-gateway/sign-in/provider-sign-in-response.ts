import type { SignInResult } from "#accounts/federation";
import {
  errorHeaders,
  type GatewayRequest,
  type GatewayResponse,
  HttpError,
  jsonResponse,
  prefersHtml,
  setSessionCookie,
} from "#http";
import { html, type PageContent, type RenderPage, seeOther } from "#rest-gateway/pages";
import { CREDENTIALS_REQUIRED } from "#runtime";
import { redirectToClient } from "./auth-v1/client-redirect.ts";
import { alert, type RejectedForm, renderForm } from "./pages/form-page.ts";
import { ACCOUNT_PATH, CODE_FIELD, continuePage, SIGN_IN_PATH, signedInContent } from "./pages/sign-in-pages.ts";

/** Returns the response to the browser at the end of a sign-in. */
export function respondToSignIn(request: GatewayRequest, result: SignInResult, render: RenderPage): GatewayResponse {
  switch (result.kind) {
    case "session": {
      const { id, username, claims } = result.session;
      const headers = setSessionCookie(id);
      if (result.redirectTo !== null) return redirectWithSession(request, result.redirectTo, headers, render);
      return prefersHtml(request.headers)
        ? render({ ...signedInPage(username), headers })
        : jsonResponse(200, { username, role: claims.role, message: "Signed in." }, headers);
    }
    case "token":
      return seeOther(withCode(result.redirectTo, result.code));
    case "linked":
      if (result.redirectTo !== null) return seeOther(result.redirectTo);
      return prefersHtml(request.headers)
        ? render(linkedPage())
        : jsonResponse(200, { message: "The provider is linked." });
    case "client":
      return redirectToClient(result);
    case "code_required":
      if (prefersHtml(request.headers)) return seeOther("../code");
      throw new HttpError(401, "MFA_REQUIRED", "Two-factor code required.", {
        hint: "Send the code of the authenticator app, or an unused backup code, to POST /auth/providers/code.",
        challenge: CREDENTIALS_REQUIRED,
      });
  }
}

/**
 * Redirects to the target page. Browsers do not send Strict cookies after redirects from another site, so the page would not see the
 * new session. In that case, returns a page of this site that navigates to the target.
 */
function redirectWithSession(
  { headers: requestHeaders }: GatewayRequest,
  address: string,
  cookie: GatewayResponse["headers"],
  render: RenderPage,
): GatewayResponse {
  if (requestHeaders["sec-fetch-site"] !== "cross-site") return seeOther(address, cookie);
  const page = continuePage(address);
  return render({ ...page, title: "Signed in", headers: { ...cookie, ...page.headers } });
}

function withCode(address: string, code: string): string {
  const url = new URL(address);
  url.searchParams.set("code", code);
  return url.href;
}

function signedInPage(username: string): PageContent {
  return { title: "Signed in", content: signedInContent(username, null) };
}

function linkedPage(): PageContent {
  const content = html`<p>You can now sign in with this provider.</p><p><a href="${ACCOUNT_PATH}">Your account</a></p>`;
  return { title: "Linked", content };
}

export function signedOutPage(): PageContent {
  const content = html`<p>You are signed out.</p><p><a href="${SIGN_IN_PATH}">Sign in</a></p>`;
  return { title: "Signed out", content };
}

export function codePage(rejected: RejectedForm | null = null): PageContent {
  const content = renderForm({ action: "", fields: [CODE_FIELD], button: "Sign in" }, rejected);
  return { title: "One more step", content, status: rejected?.error.status ?? 200 };
}

export function errorPage(error: HttpError): PageContent {
  const { message, hint, status } = error;
  const content = html`${alert(message)}
    ${hint === null ? null : html`<p>${hint}</p>`}
    <p><a href="${SIGN_IN_PATH}">Sign in another way</a></p>`;
  return { title: "Not signed in", content, status, headers: errorHeaders(error) };
}

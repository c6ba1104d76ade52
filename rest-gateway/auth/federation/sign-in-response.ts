import type { SignInResult } from "../../../engine/auth/federation/complete-sign-in.ts";
import { keepSession } from "../../../engine/caller/session-cookie.ts";
import { ApiError } from "../../../engine/errors.ts";
import { type GatewayRequest, type GatewayResponse, json } from "../../http.ts";
import { type RenderPage, seeOther } from "../../pages/page.ts";
import { acceptsHtml, continuePage, linkedPage, signedInPage } from "./pages.ts";

/** The response to the browser at the end of a sign-in. */
export function respondToSignIn(request: GatewayRequest, ending: SignInResult, render: RenderPage): GatewayResponse {
  switch (ending.kind) {
    case "session": {
      const { id, username, claims } = ending.session;
      const headers = keepSession(id);
      if (ending.redirectTo !== null) return redirectWithSession(request, ending.redirectTo, headers, render);
      return acceptsHtml(request)
        ? render({ ...signedInPage(username), headers })
        : json(200, { username, role: claims.role, message: "Signed in." }, headers);
    }
    case "token":
      return seeOther(withCode(ending.redirectTo, ending.code));
    case "linked":
      if (ending.redirectTo !== null) return seeOther(ending.redirectTo);
      return acceptsHtml(request) ? render(linkedPage()) : json(200, { message: "The provider is linked." });
    case "code_required":
      if (acceptsHtml(request)) return seeOther("../code");
      throw new ApiError(401, "MFA_REQUIRED", "Two-factor code required.", {
        hint: "Send the code of the authenticator app, or an unused backup code, to POST /auth/providers/code.",
        headers: { "WWW-Authenticate": "Bearer" },
      });
  }
}

/**
 * Browsers do not send Strict cookies after redirects from another site, so the target page would not see the new session.
 * In that case, return a page of this site that navigates to the target.
 */
function redirectWithSession(
  { headers: requestHeaders }: GatewayRequest,
  address: string,
  cookie: GatewayResponse["headers"],
  render: RenderPage,
): GatewayResponse {
  if (requestHeaders["sec-fetch-site"] !== "cross-site") return seeOther(address, cookie);
  return render({ ...continuePage(address), headers: { ...cookie, Refresh: `0; url=${address}` } });
}

function withCode(address: string, code: string): string {
  const url = new URL(address);
  url.searchParams.set("code", code);
  return url.href;
}

import type { Ending } from "../../../engine/auth/federation/landing.ts";
import { keepSession } from "../../../engine/caller/session-cookie.ts";
import { ApiError } from "../../../engine/errors.ts";
import { type GatewayRequest, type GatewayResponse, json } from "../../http.ts";
import { type RenderPage, seeOther } from "../../pages/page.ts";
import { goOnPage, linkedPage, signedInPage, wantsPage } from "./pages.ts";

/** What the browser is told at the end of a sign-in. */
export function answerEnding(request: GatewayRequest, ending: Ending, render: RenderPage): GatewayResponse {
  switch (ending.kind) {
    case "session": {
      const { id, username, claims } = ending.session;
      const headers = keepSession(id);
      if (ending.redirectTo !== null) return goOn(request, ending.redirectTo, headers, render);
      return wantsPage(request)
        ? render({ ...signedInPage(username), headers })
        : json(200, { username, role: claims.role, message: "Signed in." }, headers);
    }
    case "token":
      return seeOther(withCode(ending.redirectTo, ending.code));
    case "linked":
      if (ending.redirectTo !== null) return seeOther(ending.redirectTo);
      return wantsPage(request) ? render(linkedPage()) : json(200, { message: "The provider is linked." });
    case "code_required":
      if (wantsPage(request)) return seeOther("../code");
      throw new ApiError(401, "MFA_REQUIRED", "This account asks for a code besides.", {
        hint: "Send the code of the authenticator app, or an unused backup code, to POST /auth/providers/code.",
        headers: { "WWW-Authenticate": "Bearer" },
      });
  }
}

/**
 * To a journey that a page of the provider began browsers add no cookie that is Strict, whatever it is redirected to: the
 * first page would not know who has just signed in. So a page of ours begins a journey of its own.
 */
function goOn(
  { headers: asked }: GatewayRequest,
  address: string,
  cookie: GatewayResponse["headers"],
  render: RenderPage,
): GatewayResponse {
  if (asked["sec-fetch-site"] !== "cross-site") return seeOther(address, cookie);
  return render({ ...goOnPage(address), headers: { ...cookie, Refresh: `0; url=${address}` } });
}

function withCode(address: string, code: string): string {
  const url = new URL(address);
  url.searchParams.set("code", code);
  return url.href;
}

import { forgetSession, readSessionCookie } from "../../../engine/caller/session-cookie.ts";
import { toApiError } from "../../../engine/errors.ts";
import type { Routes } from "../../gateway.ts";
import { type Handler, json } from "../../http.ts";
import { seeOther } from "../../pages/page.ts";
import { OPTIONAL_TEXT, readFields } from "../body-fields.ts";
import { clientInfoOf } from "../client-info.ts";
import { authRequired, identifyUser } from "../credentials.ts";
import { getBrowserSecret, readBrowserSecret, setBrowserCookie } from "./browser-cookie.ts";
import { providerName, readCallbackRequest } from "./callback-request.ts";
import type { FederationDependencies } from "./federation-handlers.ts";
import { acceptsHtml, signedOutPage } from "./pages.ts";

/** Ends the session here and at the provider. */
export function signOutRoutes(services: FederationDependencies): Routes {
  const { federation, sessions } = services.accounts;

  const finish: Handler = async (request) => {
    const [callback, browser] = [await readCallbackRequest(request), readBrowserSecret(request)];
    const address = await federation.finishSignOut(providerName(request), callback, browser, clientInfoOf(request));
    if (address !== null) return seeOther(address);
    return acceptsHtml(request) ? services.render(signedOutPage()) : json(200, { message: "Signed out." });
  };

  return {
    "sign-out": {
      POST: async (request) => {
        const { caller } = await identifyUser(request, services);
        const session = readSessionCookie(request.headers);
        if (caller.kind !== "session" || session === null) throw authRequired();
        const { redirectTo: text } = await readFields(request, { redirectTo: OPTIONAL_TEXT });
        const browser = getBrowserSecret(request);
        const address = await federation
          .signOutUrl(providerName(request), session, { text, field: "redirectTo" }, browser)
          .catch(ignoreUnavailable);
        await sessions.close(session, clientInfoOf(request));
        const cookies = [forgetSession()["Set-Cookie"]!, setBrowserCookie(browser, { isPosted: true })];
        return json(200, { message: "Signed out.", address }, { "Set-Cookie": cookies });
      },
    },
    "signed-out": { GET: finish, POST: finish },
  };
}

/** The sign-out here succeeds even if the provider is unavailable. */
function ignoreUnavailable(error: unknown): null {
  if (toApiError(error).status < 500) throw error;
  return null;
}

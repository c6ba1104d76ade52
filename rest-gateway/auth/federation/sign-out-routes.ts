import { forgetSession, readSessionCookie } from "../../../engine/caller/session-cookie.ts";
import { toApiError } from "../../../engine/errors.ts";
import type { Routes } from "../../gateway.ts";
import { type Handler, json } from "../../http.ts";
import { seeOther } from "../../pages/page.ts";
import { authRequired, identifyUser } from "../credentials.ts";
import { OPTIONAL_TEXT, readFields } from "../fields.ts";
import { senderOf } from "../sender.ts";
import { providerIn, readArrival } from "./arrival.ts";
import { keepBrowser, nameBrowser, readBrowser } from "./browser-cookie.ts";
import type { FederationServices } from "./folder.ts";
import { signedOutPage, wantsPage } from "./pages.ts";

/** Ends a session of ours, and the provider's from which it came. */
export function signOutRoutes(services: FederationServices): Routes {
  const { federation, sessions } = services.accounts;

  const finish: Handler = async (request) => {
    const [arrival, browser] = [await readArrival(request), readBrowser(request)];
    const address = await federation.finishSignOut(providerIn(request), arrival, browser, senderOf(request));
    if (address !== null) return seeOther(address);
    return wantsPage(request) ? services.render(signedOutPage()) : json(200, { message: "Signed out." });
  };

  return {
    "sign-out": {
      POST: async (request) => {
        const { caller } = await identifyUser(request, services);
        const session = readSessionCookie(request.headers);
        if (caller.kind !== "session" || session === null) throw authRequired();
        const { redirectTo: text } = await readFields(request, { redirectTo: OPTIONAL_TEXT });
        const browser = nameBrowser(request);
        const address = await federation
          .signOutAddress(providerIn(request), session, { text, field: "redirectTo" }, browser)
          .catch(nowhereIfAway);
        await sessions.close(session, senderOf(request));
        const cookies = [forgetSession()["Set-Cookie"]!, keepBrowser(browser, { isPosted: true })];
        return json(200, { message: "Signed out.", address }, { "Set-Cookie": cookies });
      },
    },
    "signed-out": { GET: finish, POST: finish },
  };
}

/** A provider that cannot be reached keeps nobody signed in here. */
function nowhereIfAway(error: unknown): null {
  if (toApiError(error).status < 500) throw error;
  return null;
}

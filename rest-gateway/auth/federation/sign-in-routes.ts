import { PROVIDERS_PATH } from "../../../engine/auth/federation/addresses.ts";
import type { RequestedSignIn } from "../../../engine/auth/federation/departures.ts";
import type { Routes } from "../../gateway.ts";
import { type GatewayRequest, type Handler, json } from "../../http.ts";
import { seeOther } from "../../pages/page.ts";
import { identifyUser } from "../credentials.ts";
import { OPTIONAL_TEXT, readFields, TEXT } from "../fields.ts";
import { readForm, requireFields } from "../pages/read-form.ts";
import { senderOf } from "../sender.ts";
import { providerIn, readArrival } from "./arrival.ts";
import { keepBrowser, nameBrowser, readBrowser } from "./browser-cookie.ts";
import { answerEnding } from "./endings.ts";
import type { FederationServices } from "./folder.ts";
import { underOwnName } from "./own-name.ts";
import { codePage, wantsPage } from "./pages.ts";
import { readWish } from "./wish.ts";

/** What has to do with no provider in particular. */
export function commonRoutes({ accounts: { federation }, crossSite, render }: FederationServices): Routes {
  return {
    "": {
      GET: async () => {
        const providers = (await federation.list()).map(({ name, title, kind }) => {
          return { name, title, kind, address: `${PROVIDERS_PATH}/${name}/sign-in` };
        });
        return json(200, { providers });
      },
    },
    exchange: {
      POST: async (request) => {
        const { code, codeVerifier } = await readFields(request, { code: TEXT, codeVerifier: OPTIONAL_TEXT });
        return json(200, await federation.exchangeCode(code, codeVerifier, senderOf(request)));
      },
    },
    code: {
      GET: () => render(codePage()),
      POST: async (request) => {
        crossSite.guard(request, null);
        const code = await readCode(request);
        const ending = await federation.finishWithCode(code, readBrowser(request), senderOf(request));
        return answerEnding(request, ending, render);
      },
    },
  };
}

export function signInRoutes(services: FederationServices): Routes {
  const { accounts, render } = services;
  const { federation } = accounts;

  const depart = async (request: GatewayRequest, requested: RequestedSignIn) => {
    const browser = nameBrowser(request);
    const { address, isPosted } = await federation.begin(providerIn(request), requested, browser, senderOf(request));
    return { address, headers: { "Set-Cookie": keepBrowser(browser, { isPosted }) } };
  };

  const finish: Handler = async (request) => {
    const [arrival, browser] = [await readArrival(request), readBrowser(request)];
    const ending = await federation.finish(providerIn(request), arrival, browser, senderOf(request));
    return answerEnding(request, ending, render);
  };

  return {
    "sign-in": {
      GET: async (request) => {
        const elsewhere = underOwnName(request, services.siteUrl());
        if (elsewhere !== null) return seeOther(elsewhere);
        const { address, headers } = await depart(request, readWish(request));
        return seeOther(address, headers);
      },
    },
    // By POST and with the session's token: else somebody could link an identity of theirs to another's account.
    link: {
      POST: async (request) => {
        const { userId } = await identifyUser(request, services);
        const { redirectTo: text } = await readFields(request, { redirectTo: OPTIONAL_TEXT });
        const redirectTo = { text, field: "redirectTo" };
        const { address, headers } = await depart(request, {
          mode: "session",
          redirectTo,
          codeChallenge: null,
          userId,
        });
        return json(200, { address }, headers);
      },
    },
    callback: { GET: finish, POST: finish },
    metadata: {
      GET: async (request) => ({
        status: 200,
        headers: { "Content-Type": "application/samlmetadata+xml" },
        body: await federation.metadata(providerIn(request)),
      }),
    },
  };
}

/** From the page's form, or from a program. */
async function readCode(request: GatewayRequest): Promise<string> {
  if (wantsPage(request)) return requireFields(await readForm(request), ["code"]).code;
  return (await readFields(request, { code: TEXT })).code;
}

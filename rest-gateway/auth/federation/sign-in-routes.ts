import type { RequestedSignIn } from "../../../engine/auth/federation/oauth-state-store.ts";
import { PROVIDERS_PATH } from "../../../engine/auth/federation/service-urls.ts";
import type { Routes } from "../../gateway.ts";
import { type GatewayRequest, type Handler, json } from "../../http.ts";
import { seeOther } from "../../pages/page.ts";
import { OPTIONAL_TEXT, readFields, TEXT } from "../body-fields.ts";
import { clientInfoOf } from "../client-info.ts";
import { identifyUser } from "../credentials.ts";
import { readForm, requireFields } from "../pages/read-form.ts";
import { getBrowserSecret, readBrowserSecret, setBrowserCookie } from "./browser-cookie.ts";
import { providerName, readCallbackRequest } from "./callback-request.ts";
import { canonicalLoopbackUrl } from "./canonical-loopback-url.ts";
import type { FederationDependencies } from "./federation-handlers.ts";
import { acceptsHtml, codePage } from "./pages.ts";
import { readSignInOptions } from "./read-sign-in-options.ts";
import { respondToSignIn } from "./sign-in-response.ts";

/** Routes that are not specific to a provider. */
export function commonRoutes({ accounts: { federation }, crossSite, render }: FederationDependencies): Routes {
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
        return json(200, await federation.exchangeCode(code, codeVerifier, clientInfoOf(request)));
      },
    },
    code: {
      GET: () => render(codePage()),
      POST: async (request) => {
        crossSite.guard(request, null);
        const code = await readCode(request);
        const result = await federation.finishWithCode(code, readBrowserSecret(request), clientInfoOf(request));
        return respondToSignIn(request, result, render);
      },
    },
  };
}

export function signInRoutes(services: FederationDependencies): Routes {
  const { accounts, render } = services;
  const { federation } = accounts;

  const startSignIn = async (request: GatewayRequest, requested: RequestedSignIn) => {
    const browser = getBrowserSecret(request);
    const { url, isPosted } = await federation.begin(providerName(request), requested, browser, clientInfoOf(request));
    return { address: url, headers: { "Set-Cookie": setBrowserCookie(browser, { isPosted }) } };
  };

  const finish: Handler = async (request) => {
    const [callback, browser] = [await readCallbackRequest(request), readBrowserSecret(request)];
    const result = await federation.finish(providerName(request), callback, browser, clientInfoOf(request));
    return respondToSignIn(request, result, render);
  };

  return {
    "sign-in": {
      GET: async (request) => {
        const canonicalUrl = canonicalLoopbackUrl(request, services.siteUrl());
        if (canonicalUrl !== null) return seeOther(canonicalUrl);
        const { address, headers } = await startSignIn(request, readSignInOptions(request));
        return seeOther(address, headers);
      },
    },
    // POST with a CSRF token: otherwise an attacker could link an identity to another user's account.
    link: {
      POST: async (request) => {
        const { userId } = await identifyUser(request, services);
        const { redirectTo: text } = await readFields(request, { redirectTo: OPTIONAL_TEXT });
        const redirectTo = { text, field: "redirectTo" };
        const { address, headers } = await startSignIn(request, {
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
        body: await federation.metadata(providerName(request)),
      }),
    },
  };
}

/** From the page's form or a JSON body. */
async function readCode(request: GatewayRequest): Promise<string> {
  if (acceptsHtml(request)) return requireFields(await readForm(request), ["code"]).code;
  return (await readFields(request, { code: TEXT })).code;
}

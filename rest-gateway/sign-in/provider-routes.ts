import { generateSecret } from "#accounts";
import { type CallbackRequest, type Federation, PROVIDERS_PATH, type RequestedSignIn } from "#accounts/federation";
import {
  clearSessionCookie,
  clientInfoOf,
  dispatchMethod,
  type GatewayHandler,
  type GatewayRequest,
  type GatewayRoutes,
  HttpError,
  jsonResponse,
  notFound,
  prefersHtml,
  readSessionCookie,
  toHttpError,
  withoutCaching,
} from "#http";
import { readCookie } from "#http/request-info";
import { type AuthDependencies, authenticateUser, authRequired, requireSecondFactor } from "#rest-gateway/authenticate";
import { type RenderPage, seeOther } from "#rest-gateway/pages";
import { isLoopback } from "#runtime/safe-fetch";
import type { StartLink } from "./account/signed-in-page.ts";
import { codePage, errorPage, respondToSignIn, signedOutPage } from "./provider-sign-in-response.ts";
import { OPTIONAL_TEXT, readFields, readForm, requireFields, TEXT } from "./request/read-body.ts";

const SIGN_IN_MODES = ["session", "token"] as const;
/** The pattern of a base64url SHA-256 (RFC 7636 §4.2). */
const CODE_CHALLENGE_PATTERN = /^[\w-]{43}$/;

const BROWSER_COOKIE = "FEDERATION";
const BROWSER_COOKIE_ATTRIBUTES = `Path=${PROVIDERS_PATH}; HttpOnly; Secure; Max-Age=1800`;

type ProviderRouteDependencies = AuthDependencies & {
  readonly federation: Federation;
  readonly render: RenderPage;
  /** Returns the public URL of the service. */
  readonly siteUrl: () => string;
};

/** Handles sign-in through identity providers: `/auth/providers`, `/auth/providers/code`, `/auth/providers/{name}/callback` … */
export function federationHandlers(services: ProviderRouteDependencies): Readonly<Record<string, GatewayHandler>> {
  const commonMethods = methodsByPath(withoutCaching(commonRoutes(services)));
  const providerMethods = methodsByPath(withoutCaching({ ...signInRoutes(services), ...signOutRoutes(services) }));
  const handle: GatewayHandler = (request) => {
    const [first = "", second, ...further] = pathSegments(request);
    const methods = second === undefined ? commonMethods.get(first) : providerMethods.get(second);
    if (!methods || further.length > 0 || request.path.endsWith("/")) throw notFound();
    return dispatchMethod(methods, request);
  };
  return { [PROVIDERS_PATH]: withErrorPages(handle, services.render) };
}

function methodsByPath(routes: GatewayRoutes): ReadonlyMap<string, ReadonlyMap<string, GatewayHandler>> {
  return new Map(Object.entries(routes).map(([path, methods]) => [path, new Map(Object.entries(methods))]));
}

/** Renders expected errors as pages for browsers. Unexpected errors are rethrown, to be logged. */
function withErrorPages(handle: GatewayHandler, render: RenderPage): GatewayHandler {
  return async (request) => {
    try {
      return await handle(request);
    } catch (thrown) {
      const error = toHttpError(thrown);
      if (!prefersHtml(request.headers) || error.status === 500) throw error;
      if (error.code !== "INVALID_CODE") return render(errorPage(error));
      return render(codePage({ values: new URLSearchParams(), error }));
    }
  };
}

/** Routes that are not specific to a provider. */
export function commonRoutes({ federation, csrf, render }: ProviderRouteDependencies): GatewayRoutes {
  return {
    "": {
      GET: async () => {
        const providers = (await federation.list()).map(({ name, title, kind }) => {
          return { name, title, kind, address: `${PROVIDERS_PATH}/${name}/sign-in` };
        });
        return jsonResponse(200, { providers });
      },
    },
    exchange: {
      POST: async (request) => {
        const { code, codeVerifier } = await readFields(request, { code: TEXT, codeVerifier: OPTIONAL_TEXT });
        return jsonResponse(200, await federation.exchangeCode(code, codeVerifier, clientInfoOf(request)));
      },
    },
    code: {
      GET: () => render(codePage()),
      POST: async (request) => {
        csrf.checkRequest(request, null);
        const code = await readCode(request);
        const result = await federation.finishWithCode(code, readBrowserSecret(request), clientInfoOf(request));
        return respondToSignIn(request, result, render);
      },
    },
  };
}

export function signInRoutes(services: ProviderRouteDependencies): GatewayRoutes {
  const { federation, render } = services;

  const startSignIn = (request: GatewayRequest, requested: RequestedSignIn) =>
    startAtProvider(federation, request, providerName(request), requested);

  const finishSignIn: GatewayHandler = async (request) => {
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
    // This is POST with a CSRF token: otherwise an attacker could link an identity to another user's account.
    link: {
      POST: async (request) => {
        const { userId, caller } = await authenticateUser(request, services);
        await requireSecondFactor(caller, services);
        const { redirectTo: text } = await readFields(request, { redirectTo: OPTIONAL_TEXT });
        const redirectTo = { text, field: "redirectTo" };
        const { address, headers } = await startSignIn(request, linkRequest(userId, redirectTo));
        return jsonResponse(200, { address }, headers);
      },
    },
    callback: { GET: finishSignIn, POST: finishSignIn },
    metadata: {
      GET: async (request) => ({
        status: 200,
        headers: { "Content-Type": "application/samlmetadata+xml" },
        body: await federation.metadata(providerName(request)),
      }),
    },
  };
}

/** Lets a form of the account page start to link a provider; the page has checked the CSRF token. */
export function makeStartLink(federation: Federation): StartLink {
  return (request, { provider, userId, redirectTo: text }) =>
    startAtProvider(federation, request, provider, linkRequest(userId, { text, field: "redirect_to" }));
}

function linkRequest(userId: string, redirectTo: RequestedSignIn["redirectTo"]): RequestedSignIn {
  return { mode: "session", redirectTo, codeChallenge: null, userId };
}

async function startAtProvider(
  federation: Federation,
  request: GatewayRequest,
  name: string,
  requested: RequestedSignIn,
) {
  const browser = getBrowserSecret(request);
  const { url, isPosted } = await federation.begin(name, requested, browser, clientInfoOf(request));
  return { address: url, headers: { "Set-Cookie": setBrowserCookie(browser, { isPosted }) } };
}

/** Reads the code from the page's form or a JSON body. */
async function readCode(request: GatewayRequest): Promise<string> {
  if (prefersHtml(request.headers)) return requireFields(await readForm(request), ["code"]).code;
  return (await readFields(request, { code: TEXT })).code;
}

/** Routes that end the session here and at the provider. */
export function signOutRoutes(services: ProviderRouteDependencies): GatewayRoutes {
  const { federation, accounts } = services;

  const finishSignOut: GatewayHandler = async (request) => {
    const [callback, browser] = [await readCallbackRequest(request), readBrowserSecret(request)];
    const address = await federation.finishSignOut(providerName(request), callback, browser, clientInfoOf(request));
    if (address !== null) return seeOther(address);
    return prefersHtml(request.headers)
      ? services.render(signedOutPage())
      : jsonResponse(200, { message: "Signed out." });
  };

  return {
    "sign-out": {
      POST: async (request) => {
        const { caller } = await authenticateUser(request, services);
        const session = readSessionCookie(request.headers);
        if (caller.kind !== "session" || session === null) throw authRequired();
        const { redirectTo: text } = await readFields(request, { redirectTo: OPTIONAL_TEXT });
        const browser = getBrowserSecret(request);
        const address = await federation
          .beginSignOut(providerName(request), session, { text, field: "redirectTo" }, browser)
          .catch(ignoreUnavailable);
        await accounts.sessions.close(session, clientInfoOf(request));
        const cookies = [clearSessionCookie()["Set-Cookie"]!, setBrowserCookie(browser, { isPosted: true })];
        return jsonResponse(200, { message: "Signed out.", address }, { "Set-Cookie": cookies });
      },
    },
    "signed-out": { GET: finishSignOut, POST: finishSignOut },
  };
}

/** Ignores an unavailable provider: the sign-out here succeeds anyway. */
function ignoreUnavailable(error: unknown): null {
  if (toHttpError(error).status < 500) throw error;
  return null;
}

/** Reads `?redirect_to=https://app.example.com/&mode=token&code_challenge=…`. */
function readSignInOptions({ rawQuery }: Pick<GatewayRequest, "rawQuery">): RequestedSignIn {
  const query = new URLSearchParams(rawQuery);
  const mode = SIGN_IN_MODES.find((each) => each === (query.get("mode") ?? "session"));
  if (!mode) throw parameterError("mode", `Use ${SIGN_IN_MODES.join(" or ")}.`);
  const codeChallenge = query.get("code_challenge");
  const method = query.get("code_challenge_method") ?? "S256";
  if (method !== "S256") throw parameterError("code_challenge_method", "Only S256 is supported.");
  if (codeChallenge !== null && !CODE_CHALLENGE_PATTERN.test(codeChallenge)) {
    throw parameterError("code_challenge", "Send the verifier's SHA-256 in base64url.");
  }
  const redirectTo = { text: query.get("redirect_to"), field: "redirect_to" };
  return { mode, redirectTo, codeChallenge, userId: null };
}

function parameterError(field: string, message: string): HttpError {
  return new HttpError(400, "VALIDATION_ERROR", `Invalid parameter: ${field}.`, { details: [{ field, message }] });
}

/** Reads the provider's response from the query string or a posted form. */
async function readCallbackRequest(request: GatewayRequest): Promise<CallbackRequest> {
  const form = request.method === "POST" ? await readForm(request) : new URLSearchParams();
  return { query: request.rawQuery, form };
}

/** Splits the path: `/auth/providers/example/callback` -> `example` and `callback`. */
function pathSegments({ path }: Pick<GatewayRequest, "path">): string[] {
  return path.slice(PROVIDERS_PATH.length).split("/").slice(1);
}

function providerName(request: GatewayRequest): string {
  return pathSegments(request)[0]!;
}

/** Reads the secret that binds a sign-in to the browser that started it; "" without a valid cookie. */
function readBrowserSecret({ headers }: Pick<GatewayRequest, "headers">): string {
  const value = readCookie(headers.cookie, BROWSER_COOKIE);
  return value !== null && /^[\w-]{43}$/.test(value) ? value : "";
}

/** Returns the browser's secret, or a new one. All tabs share it. */
function getBrowserSecret(request: Pick<GatewayRequest, "headers">): string {
  return readBrowserSecret(request) || generateSecret();
}

/** Sets the cookie. Browsers do not send Lax cookies with the cross-site POST of a SAML provider. */
function setBrowserCookie(browser: string, { isPosted }: { readonly isPosted: boolean }): string {
  return `${BROWSER_COOKIE}=${browser}; ${BROWSER_COOKIE_ATTRIBUTES}; SameSite=${isPosted ? "None" : "Lax"}`;
}

/**
 * `localhost` and `127.0.0.1` are different sites to a browser, so a cookie that is set under one is missing when the
 * provider redirects to the other. Returns the URL under the service's own host name; null if the request uses it already.
 */
function canonicalLoopbackUrl(
  { headers: { host }, path, rawQuery }: Pick<GatewayRequest, "headers" | "path" | "rawQuery">,
  siteUrl: string,
): string | null {
  const [requested, own] = [URL.parse(`http://${host}`), new URL(siteUrl)];
  if (
    !isLoopback(requested) ||
    !isLoopback(own) ||
    requested!.port !== own.port ||
    requested!.hostname === own.hostname
  )
    return null;
  return `${siteUrl}${path}${rawQuery === "" ? "" : `?${rawQuery}`}`;
}

import { PROVIDERS_PATH } from "../../../engine/auth/federation/service-urls.ts";
import { generateSecret } from "../../../engine/auth/random-secret.ts";
import { readCookie } from "../../../engine/caller/cookies.ts";
import type { GatewayRequest } from "../../http.ts";

const NAME = "FEDERATION";
const ATTRIBUTES = `Path=${PROVIDERS_PATH}; HttpOnly; Secure; Max-Age=1800`;

/** The secret that binds a sign-in to the browser that started it; "" without a valid cookie. */
export function readBrowserSecret({ headers }: Pick<GatewayRequest, "headers">): string {
  const value = readCookie(headers.cookie, NAME);
  return value !== null && /^[\w-]{43}$/.test(value) ? value : "";
}

/** The browser's secret, or a new one. All tabs share it. */
export function getBrowserSecret(request: Pick<GatewayRequest, "headers">): string {
  return readBrowserSecret(request) || generateSecret();
}

/** Browsers do not send Lax cookies with the cross-site POST of a SAML provider. */
export function setBrowserCookie(browser: string, { isPosted }: { readonly isPosted: boolean }): string {
  return `${NAME}=${browser}; ${ATTRIBUTES}; SameSite=${isPosted ? "None" : "Lax"}`;
}

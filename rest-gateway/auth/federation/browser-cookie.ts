import { PROVIDERS_PATH } from "../../../engine/auth/federation/addresses.ts";
import { newSecret } from "../../../engine/auth/secret.ts";
import { readCookie } from "../../../engine/caller/cookies.ts";
import type { GatewayRequest } from "../../http.ts";

const NAME = "FEDERATION";
const ATTRIBUTES = `Path=${PROVIDERS_PATH}; HttpOnly; Secure; Max-Age=1800`;

/** By what a browser that comes back is known to be the one that left; "" for one that shows nothing of ours. */
export function readBrowser({ headers }: Pick<GatewayRequest, "headers">): string {
  const value = readCookie(headers.cookie, NAME);
  return value !== null && /^[\w-]{43}$/.test(value) ? value : "";
}

/** The same for all its tabs. */
export function nameBrowser(request: Pick<GatewayRequest, "headers">): string {
  return readBrowser(request) || newSecret();
}

/** To the form that a provider of SAML sends from its own page, no browser adds a cookie that is Lax. */
export function keepBrowser(browser: string, { isPosted }: { readonly isPosted: boolean }): string {
  return `${NAME}=${browser}; ${ATTRIBUTES}; SameSite=${isPosted ? "None" : "Lax"}`;
}

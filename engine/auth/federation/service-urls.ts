import type { ServiceUrls } from "./provider.ts";

/** The prefix of all paths for providers. */
export const PROVIDERS_PATH = "/auth/providers";

/** Separate URLs per provider, so that the response of one is never accepted as another's (RFC 9700 §4.4). */
export function serviceUrlsFor(name: string, siteUrl: string): ServiceUrls {
  const base = `${siteUrl}${PROVIDERS_PATH}/${name}`;
  return { callback: `${base}/callback`, signedOut: `${base}/signed-out`, metadata: `${base}/metadata` };
}

import type { Addresses } from "./provider.ts";

/** Below it is all that has to do with providers. */
export const PROVIDERS_PATH = "/auth/providers";

/** One each for every provider: an answer of one is never taken for another's (RFC 9700 §4.4). */
export function addressesOf(name: string, siteUrl: string): Addresses {
  const base = `${siteUrl}${PROVIDERS_PATH}/${name}`;
  return { callback: `${base}/callback`, signedOut: `${base}/signed-out`, metadata: `${base}/metadata` };
}

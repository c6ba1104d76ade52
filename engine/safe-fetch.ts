import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { CustomFetch } from "openid-client";
import { isPublicAddress } from "./limits/ip-address.ts";

type SafeFetchOptions = {
  /** The configured URL of the provider; plain HTTP is allowed for one on this machine. */
  readonly providerUrl: string;
  readonly allowsPrivateNetwork: boolean;
};

const TIMEOUT_MS = 10_000;
const MAX_RESPONSE_BYTES = 1024 * 1024;

/** A fetch that protects against SSRF: URLs from the provider's metadata must not reach our private network. */
export function makeSafeFetch({ providerUrl, allowsPrivateNetwork }: SafeFetchOptions): CustomFetch {
  const isLocalProvider = isLoopback(URL.parse(providerUrl));
  return async (address, options) => {
    const url = new URL(address);
    await checkAllowedAddress(url, { isHomeHere: isLocalProvider, allowsPrivateNetwork });
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    const signal = options.signal ? AbortSignal.any([options.signal, timeout]) : timeout;
    const response = await fetch(url, { ...(options as RequestInit), redirect: "manual", signal });
    return new Response(await readBounded(response), { status: response.status, headers: response.headers });
  };
}

export function isLoopback(url: URL | null): boolean {
  return url !== null && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
}

/** DNS rebinding after this check is harmless, because the other host has no certificate for the name. */
async function checkAllowedAddress(
  url: URL,
  { isHomeHere: isLocalProvider, allowsPrivateNetwork }: { isHomeHere: boolean; allowsPrivateNetwork: boolean },
): Promise<void> {
  if (isLocalProvider && isLoopback(url) && /^https?:$/.test(url.protocol)) return;
  if (url.protocol !== "https:") throw new Error(`${url.origin} is not allowed: it is not an https URL`);
  if (allowsPrivateNetwork) return;
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const addresses = isIP(host) ? [host] : (await lookup(host, { all: true })).map(({ address }) => address);
  if (addresses.every(isPublicAddress)) return;
  throw new Error(`${url.origin} is not allowed: it has a private address (see --private-network)`);
}

async function readBounded({ body }: Response): Promise<Buffer<ArrayBuffer> | null> {
  if (!body) return null;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > MAX_RESPONSE_BYTES)
      throw new Error(`The provider's response is longer than ${MAX_RESPONSE_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

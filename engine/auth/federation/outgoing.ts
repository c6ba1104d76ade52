import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import type { CustomFetch } from "openid-client";
import { isPublicAddress } from "../../public-address.ts";

type Reach = {
  /** Where the provider was said to be: one on this machine may be asked without encryption. */
  readonly home: string;
  readonly isPrivateAllowed: boolean;
};

const PATIENCE_MS = 10_000;
const MOST_BYTES = 1024 * 1024;

/** Asks a provider and nobody else: what it says of its own addresses is not to be turned against our network. */
export function makeOutgoing({ home, isPrivateAllowed }: Reach): CustomFetch {
  const isHomeHere = isLoopback(URL.parse(home));
  return async (address, options) => {
    const url = new URL(address);
    await checkReach(url, { isHomeHere, isPrivateAllowed });
    const patience = AbortSignal.timeout(PATIENCE_MS);
    const signal = options.signal ? AbortSignal.any([options.signal, patience]) : patience;
    const response = await fetch(url, { ...(options as RequestInit), redirect: "manual", signal });
    return new Response(await readBounded(response), { status: response.status, headers: response.headers });
  };
}

export function isLoopback(url: URL | null): boolean {
  return url !== null && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
}

/** The certificate that https asks for is the name's own: an address that changes after it was looked up cannot show it. */
async function checkReach(
  url: URL,
  { isHomeHere, isPrivateAllowed }: { isHomeHere: boolean; isPrivateAllowed: boolean },
): Promise<void> {
  if (isHomeHere && isLoopback(url) && /^https?:$/.test(url.protocol)) return;
  if (url.protocol !== "https:") throw new Error(`${url.origin} is not asked: it is no https address`);
  if (isPrivateAllowed) return;
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const addresses = isIP(host) ? [host] : (await lookup(host, { all: true })).map(({ address }) => address);
  if (addresses.every(isPublicAddress)) return;
  throw new Error(`${url.origin} is not asked: it has a private address (see --private-network)`);
}

async function readBounded({ body }: Response): Promise<Buffer<ArrayBuffer> | null> {
  if (!body) return null;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) throw new Error(`The provider's answer is longer than ${MOST_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

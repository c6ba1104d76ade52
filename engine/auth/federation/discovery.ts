import * as openid from "openid-client";
import { providerUnavailable } from "./federation-errors.ts";
import { toProviderUnavailable } from "./openid-errors.ts";
import type { Provider } from "./provider.ts";
import { isLoopback, makeSafeFetch } from "./safe-fetch.ts";

/** Returns the provider's OpenID configuration. */
export type DiscoverConfiguration = (provider: Provider) => Promise<openid.Configuration>;

type CachedConfiguration = {
  /** The provider's row as JSON; a changed row invalidates the entry. */
  readonly row: string;
  readonly until: number;
  readonly configuration: Promise<openid.Configuration>;
};

/** Independently, the library refetches the keys when a token has an unknown key id. */
const CACHE_MS = 10 * 60_000;
/** The accepted clock difference to the provider, in seconds. */
const CLOCK_TOLERANCE = 30;

export function makeDiscovery(): DiscoverConfiguration {
  const cache = new Map<string, CachedConfiguration>();
  return (provider) => {
    const row = JSON.stringify(provider);
    const cached = cache.get(provider.name);
    if (cached?.row === row && performance.now() < cached.until) return cached.configuration;
    const configuration = discover(provider);
    cache.set(provider.name, { row, until: performance.now() + CACHE_MS, configuration });
    configuration.catch(() => cache.delete(provider.name));
    return configuration;
  };
}

async function discover(provider: Provider): Promise<openid.Configuration> {
  const { issuer, clientId, secret, settings } = provider;
  const issuerUrl = new URL(issuer);
  const allowsPrivateNetwork = settings.private_network ?? false;
  const configuration = await openid
    .discovery(
      issuerUrl,
      clientId!,
      { [openid.clockTolerance]: CLOCK_TOLERANCE },
      secret === null ? openid.None() : openid.ClientSecretPost(secret),
      {
        [openid.customFetch]: makeSafeFetch({ providerUrl: issuer, allowsPrivateNetwork }),
        // Without these checks, the library does not verify signatures of tokens that came over TLS.
        execute: [openid.enableNonRepudiationChecks, ...(isLoopback(issuerUrl) ? [openid.allowInsecureRequests] : [])],
      },
    )
    .catch((error) => {
      throw toProviderUnavailable(error);
    });
  const { issuer: actualIssuer } = configuration.serverMetadata();
  // The library accepts any tenant for some Microsoft issuers, so that anybody with a tenant could name any user.
  if (actualIssuer !== issuer)
    throw providerUnavailable(new Error(`Its issuer is ${actualIssuer}, but it was added as ${issuer}`));
  return configuration;
}

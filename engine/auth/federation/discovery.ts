import * as openid from "openid-client";
import { toUnavailable } from "./openid-faults.ts";
import { isLoopback, makeOutgoing } from "./outgoing.ts";
import type { Provider } from "./provider.ts";
import { providerUnavailable } from "./refusals.ts";

/** What a provider says of itself. */
export type Discover = (provider: Provider) => Promise<openid.Configuration>;

type Remembered = {
  /** As it was asked about: a changed row is asked about anew. */
  readonly row: string;
  readonly until: number;
  readonly configuration: Promise<openid.Configuration>;
};

/** Its keys are asked for again, besides, when a token names one that is unknown. */
const REMEMBERED_MS = 10 * 60_000;
/** How far the provider's clock may be apart from ours, in seconds. */
const SKEW = 30;

export function makeDiscovery(): Discover {
  const remembered = new Map<string, Remembered>();
  return (provider) => {
    const row = JSON.stringify(provider);
    const known = remembered.get(provider.name);
    if (known?.row === row && performance.now() < known.until) return known.configuration;
    const configuration = discover(provider);
    remembered.set(provider.name, { row, until: performance.now() + REMEMBERED_MS, configuration });
    configuration.catch(() => remembered.delete(provider.name));
    return configuration;
  };
}

async function discover(provider: Provider): Promise<openid.Configuration> {
  const { issuer, clientId, secret, settings } = provider;
  const home = new URL(issuer);
  const isPrivateAllowed = settings.private_network ?? false;
  const configuration = await openid
    .discovery(
      home,
      clientId!,
      { [openid.clockTolerance]: SKEW },
      secret === null ? openid.None() : openid.ClientSecretPost(secret),
      {
        [openid.customFetch]: makeOutgoing({ home: issuer, isPrivateAllowed }),
        // Without it the library takes what came over TLS as signed.
        execute: [openid.enableNonRepudiationChecks, ...(isLoopback(home) ? [openid.allowInsecureRequests] : [])],
      },
    )
    .catch((error) => {
      throw toUnavailable(error);
    });
  const { issuer: told } = configuration.serverMetadata();
  // The library lets some tenants of Microsoft through: whose users they are would be for whoever has a tenant to say.
  if (told !== issuer) throw providerUnavailable(new Error(`It calls itself ${told}, and was added as ${issuer}`));
  return configuration;
}

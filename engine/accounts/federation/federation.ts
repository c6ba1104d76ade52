import type { Config } from "../../config/config.ts";
import type { AsOwner } from "../../database/owner-pool.ts";
import { ApiError } from "../../errors.ts";
import type { IssuingKeys } from "../../identity/token-keys.ts";
import type { LoginAttempts } from "../login-attempts.ts";
import type { Sessions } from "../sessions.ts";
import type { TokenPairs } from "../token-pairs.ts";
import {
  beginSignIn,
  exchangeCode,
  finishSignIn,
  finishWithCode,
  type SignInDependencies,
} from "./federated-sign-in.ts";
import { beginSignOut, finishSignOut } from "./federated-sign-out.ts";
import { asProviderError } from "./federation-errors.ts";
import { makeOAuthProtocol, makeOpenIdProtocol } from "./oauth-protocol.ts";
import { makeOAuthStateStore } from "./oauth-state-store.ts";
import { type Provider, type ProviderProtocol, serviceUrlsFor } from "./provider.ts";
import { type ListedProvider, makeProviders } from "./providers.ts";
import { readRedirectTarget } from "./read-redirect-target.ts";
import { makeSamlProtocol } from "./saml-protocol.ts";

type FederationOptions = {
  readonly asOwner: AsOwner;
  readonly keys: IssuingKeys;
  readonly attempts: LoginAttempts;
  readonly sessions: Pick<Sessions, "open">;
  readonly tokens: Pick<TokenPairs, "open">;
  readonly config: Pick<Config, "signInRedirects">;
  /** The public URL of the service; all redirect URLs are built from it alone. */
  readonly siteUrl: () => string;
};

export type Federation = ReturnType<typeof makeFederation>;

/** Sign-in through external providers. `browser` is the secret in the federation cookie of the browser. */
export function makeFederation({ asOwner, keys, attempts, sessions, tokens, config, siteUrl }: FederationOptions) {
  const providers = makeProviders(asOwner, async () => keys);
  const openIdProtocol = makeOpenIdProtocol();
  const urlsOf = ({ name }: Provider) => serviceUrlsFor(name, siteUrl());
  const protocolOf = (provider: Provider): ProviderProtocol => {
    if (provider.kind === "oidc") return openIdProtocol(provider, urlsOf(provider));
    if (provider.kind === "oauth2") return makeOAuthProtocol(provider, urlsOf(provider));
    return makeSamlProtocol(provider, urlsOf(provider));
  };
  const dependencies: SignInDependencies = {
    asOwner,
    attempts,
    openSession: sessions.open,
    providers,
    protocolOf,
    stateStore: makeOAuthStateStore(asOwner),
    readRedirectTarget: (requested) => readRedirectTarget(requested, siteUrl(), config.signInRedirects),
  };
  return {
    begin: beginSignIn.bind(null, dependencies),
    finish: finishSignIn.bind(null, dependencies),
    finishWithCode: finishWithCode.bind(null, dependencies),
    exchangeCode: exchangeCode.bind(null, asOwner, tokens.open),
    beginSignOut: beginSignOut.bind(null, dependencies),
    finishSignOut: finishSignOut.bind(null, dependencies),
    /** The enabled providers. */
    list: async (): Promise<ListedProvider[]> => (await providers.list()).filter(({ enabled }) => enabled),
    /** The SAML metadata of this service. */
    async metadata(name: string): Promise<string> {
      const provider = await providers.find(name);
      if (provider.kind !== "saml")
        throw new ApiError("notFound", "RESOURCE_NOT_FOUND", "This provider does not use SAML.");
      return asProviderError(() => makeSamlProtocol(provider, urlsOf(provider)).metadata);
    },
  };
}

import { ApiError } from "../../errors.ts";
import { makeOAuthProtocol } from "./oauth.ts";
import { makeOpenIdProtocol } from "./openid.ts";
import type { Provider, ProviderProtocol } from "./provider.ts";
import { makeSamlProtocol, type SamlProtocol } from "./saml.ts";
import { serviceUrlsFor } from "./service-urls.ts";

export type ProviderProtocols = {
  of(provider: Provider): ProviderProtocol;
  /** Throws 404 for a provider of another protocol. */
  samlOf(provider: Provider): SamlProtocol;
};

export function makeProtocols(siteUrl: () => string): ProviderProtocols {
  const openId = makeOpenIdProtocol();
  const addresses = ({ name }: Provider) => serviceUrlsFor(name, siteUrl());
  return {
    of(provider) {
      if (provider.kind === "oidc") return openId(provider, addresses(provider));
      return provider.kind === "oauth2"
        ? makeOAuthProtocol(provider, addresses(provider))
        : makeSamlProtocol(provider, addresses(provider));
    },
    samlOf(provider) {
      if (provider.kind === "saml") return makeSamlProtocol(provider, addresses(provider));
      throw new ApiError(404, "RESOURCE_NOT_FOUND", "This provider does not use SAML.");
    },
  };
}

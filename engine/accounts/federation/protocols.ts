import { ApiError } from "../../errors.ts";
import { makeOAuthProtocol, makeOpenIdProtocol } from "./oauth-protocol.ts";
import { type Provider, type ProviderProtocol, serviceUrlsFor } from "./provider.ts";
import { makeSamlProtocol, type SamlProtocol } from "./saml-protocol.ts";

export type ProviderProtocols = {
  of(provider: Provider): ProviderProtocol;
  /** Throws 404 for a provider of another protocol. */
  samlOf(provider: Provider): SamlProtocol;
};

export function makeProtocols(siteUrl: () => string): ProviderProtocols {
  const openId = makeOpenIdProtocol();
  const urlsOf = ({ name }: Provider) => serviceUrlsFor(name, siteUrl());
  return {
    of(provider) {
      if (provider.kind === "oidc") return openId(provider, urlsOf(provider));
      return provider.kind === "oauth2"
        ? makeOAuthProtocol(provider, urlsOf(provider))
        : makeSamlProtocol(provider, urlsOf(provider));
    },
    samlOf(provider) {
      if (provider.kind === "saml") return makeSamlProtocol(provider, urlsOf(provider));
      throw new ApiError("notFound", "RESOURCE_NOT_FOUND", "This provider does not use SAML.");
    },
  };
}

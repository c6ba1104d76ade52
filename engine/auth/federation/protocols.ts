import { ApiError } from "../../errors.ts";
import { addressesOf } from "./addresses.ts";
import { oauthProtocol } from "./oauth.ts";
import { makeOpenId } from "./openid.ts";
import type { Protocol, Provider } from "./provider.ts";
import { type SamlProtocol, samlProtocol } from "./saml.ts";

export type Protocols = {
  of(provider: Provider): Protocol;
  /** For what SAML alone has. */
  samlOf(provider: Provider): SamlProtocol;
};

export function makeProtocols(siteUrl: () => string): Protocols {
  const openId = makeOpenId();
  const addresses = ({ name }: Provider) => addressesOf(name, siteUrl());
  return {
    of(provider) {
      if (provider.kind === "oidc") return openId(provider, addresses(provider));
      return provider.kind === "oauth2"
        ? oauthProtocol(provider, addresses(provider))
        : samlProtocol(provider, addresses(provider));
    },
    samlOf(provider) {
      if (provider.kind === "saml") return samlProtocol(provider, addresses(provider));
      throw new ApiError(404, "RESOURCE_NOT_FOUND", "This provider does not speak SAML.");
    },
  };
}

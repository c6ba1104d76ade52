import type { Config } from "#config";
import type { AsOwner } from "#postgres/database";
import { ApiError } from "#runtime";
import type { Logger } from "#runtime/log";
import type { FlowStates } from "../flow-states.ts";
import type { ClientInfo } from "../identity/client-info.ts";
import type { IssuingKeys } from "../identity/token-keys.ts";
import type { OpenSignIn } from "../login.ts";
import type { LoginAttempts } from "../login-attempts.ts";
import type { Sessions } from "../sessions.ts";
import type { LimitSignUps } from "../sign-up-limit.ts";
import type { SessionTokens, TokenPairs } from "../token-pairs.ts";
import {
  beginClientSignIn,
  type ClientSignInDependencies,
  completeClientSignIn,
  finishClientSignIn,
  finishLink,
  type IdTokenSignIn,
  signInWithIdToken,
  unlinkIdentity,
} from "./client-sign-in.ts";
import {
  beginSignIn,
  exchangeCode,
  finishSignIn,
  finishWithCode,
  type SignInDependencies,
} from "./federated-sign-in.ts";
import { beginSignOut, finishSignOut } from "./federated-sign-out.ts";
import { asProviderError } from "./federation-errors.ts";
import { makeIdTokenReader } from "./id-token.ts";
import { makeDiscovery, makeOAuthProtocol, makeOpenIdProtocol } from "./oauth-protocol.ts";
import { makeOAuthStateStore, type SignInOptions } from "./oauth-state-store.ts";
import { CLIENT_CALLBACK_PATH, type Provider, type ProviderProtocol, serviceUrlsFor } from "./provider.ts";
import { type ListedProvider, makeProviders } from "./providers.ts";
import { readRedirectTarget } from "./read-redirect-target.ts";
import { makeSamlProtocol } from "./saml-protocol.ts";

type FederationOptions = {
  readonly asOwner: AsOwner;
  readonly keys: IssuingKeys;
  readonly attempts: LoginAttempts;
  readonly sessions: Pick<Sessions, "open">;
  readonly tokens: Pick<TokenPairs, "open">;
  readonly sessionTokens: Pick<TokenPairs<SessionTokens>, "open">;
  readonly flows: FlowStates;
  readonly log: Pick<Logger, "warn" | "info">;
  readonly config: Pick<Config, "signInRedirects">;
  /** The public URL of the service; all redirect URLs are built from it alone. */
  readonly siteUrl: () => string;
  readonly limitSignUps: LimitSignUps;
};

export type Federation = ReturnType<typeof makeFederation>;

/** Sign-in through external providers. `browser` is the secret in the federation cookie of the browser. */
export function makeFederation(options: FederationOptions) {
  const { asOwner, keys, attempts, sessions, tokens, sessionTokens, flows, config, siteUrl, limitSignUps, log } =
    options;
  const providers = makeProviders(asOwner, async () => keys);
  const discover = makeDiscovery();
  const openIdProtocol = makeOpenIdProtocol(discover);
  const urlsOf = ({ name }: Provider) => serviceUrlsFor(name, siteUrl());
  const protocolOf = (provider: Provider, mode: SignInOptions["mode"] = "session"): ProviderProtocol => {
    const urls = urlsOf(provider);
    // The URLs of a SAML provider are those in the metadata.
    if (provider.kind === "saml") return makeSamlProtocol(provider, urls);
    const isForClient = mode === "code" || mode === "fragment";
    const used = isForClient ? { ...urls, callback: `${siteUrl()}${CLIENT_CALLBACK_PATH}` } : urls;
    return provider.kind === "oidc" ? openIdProtocol(provider, used) : makeOAuthProtocol(provider, used);
  };
  const forClients: ClientSignInDependencies = {
    asOwner,
    limitSignUps,
    providers,
    protocolOf,
    stateStore: makeOAuthStateStore(asOwner),
    readRedirectTarget: (requested) => readRedirectTarget(requested, siteUrl(), config.signInRedirects),
    readIdToken: makeIdTokenReader(discover, log),
    flows,
    openTokens: sessionTokens.open,
  };
  const dependencies: SignInDependencies = {
    ...forClients,
    attempts,
    openSession: sessions.open,
    completeForClient: completeClientSignIn.bind(null, forClients),
  };
  return {
    begin: beginSignIn.bind(null, dependencies),
    finish: finishSignIn.bind(null, dependencies),
    finishWithCode: finishWithCode.bind(null, dependencies),
    exchangeCode: exchangeCode.bind(null, asOwner, tokens.open),
    beginForClient: beginClientSignIn.bind(null, forClients),
    finishForClient: finishClientSignIn.bind(null, forClients),
    finishLink: finishLink.bind(null, forClients),
    signInWithIdToken: <T extends object>(submitted: IdTokenSignIn, clientInfo: ClientInfo, open: OpenSignIn<T>) =>
      signInWithIdToken(forClients, submitted, clientInfo, open),
    unlinkIdentity: unlinkIdentity.bind(null, asOwner),
    /** The SAML provider of an organisation, by its name or by a domain of its users' addresses; null if there is none. */
    findOrganisation: providers.findOrganisation,
    beginSignOut: beginSignOut.bind(null, dependencies),
    finishSignOut: finishSignOut.bind(null, dependencies),
    /** The enabled providers. */
    list: async (): Promise<ListedProvider[]> => (await providers.list()).filter(({ enabled }) => enabled),
    /** The SAML metadata of this service. */
    async metadata(name: string): Promise<string> {
      const provider = await providers.find(name);
      if (provider.kind !== "saml")
        throw new ApiError("notFound", "RESOURCE_NOT_FOUND", "This provider does not use SAML.");
      return asProviderError(() => makeSamlProtocol(provider, urlsOf(provider)).metadata());
    },
  };
}

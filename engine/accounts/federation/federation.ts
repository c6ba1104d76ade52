import type { Config } from "../../config/config.ts";
import type { AsOwner } from "../../database/owner-pool.ts";
import type { TokenKeys } from "../../identity/token-keys.ts";
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
import { makeOAuthStateStore } from "./oauth-state-store.ts";
import { makeProtocols } from "./protocols.ts";
import { type ListedProvider, makeProviders } from "./providers.ts";
import { readRedirectTarget } from "./read-redirect-target.ts";

type FederationOptions = {
  readonly asOwner: AsOwner;
  readonly keys: TokenKeys;
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
  const protocols = makeProtocols(siteUrl);
  const dependencies: SignInDependencies = {
    asOwner,
    attempts,
    openSession: sessions.open,
    providers,
    protocols,
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
      return asProviderError(() => protocols.samlOf(provider).metadata);
    },
  };
}

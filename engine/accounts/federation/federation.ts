import type { Config } from "../../config/config.ts";
import type { AsOwner } from "../../database/owner-pool.ts";
import type { TokenKeys } from "../../identity/token-keys.ts";
import type { LoginAttempts } from "../login-attempts.ts";
import type { Sessions } from "../sessions.ts";
import type { TokenPairs } from "../token-pairs.ts";
import {
  type ExchangeCode,
  type FederatedSignIn,
  makeCompleteSignIn,
  makeExchangeCode,
  makeFederatedSignIn,
  makeSecondFactorStep,
  type SecondFactorStep,
} from "./federated-sign-in.ts";
import { type FederatedSignOut, makeFederatedSignOut } from "./federated-sign-out.ts";
import { asProviderError, makeAuditFailures } from "./federation-errors.ts";
import { makeOAuthStateStore } from "./oauth-state-store.ts";
import { makeProtocols } from "./protocols.ts";
import { type ListedProvider, makeProviders } from "./providers.ts";
import { makeReadRedirectTarget, type ReadRedirectTarget } from "./read-redirect-target.ts";

/** Sign-in through external providers. `browser` is the secret in the federation cookie of the browser. */
export type Federation = FederatedSignIn &
  FederatedSignOut & {
    /** The enabled providers. */
    list(): Promise<ListedProvider[]>;
    readonly finishWithCode: SecondFactorStep["finish"];
    readonly exchangeCode: ExchangeCode;
    /** The SAML metadata of this service. */
    metadata(name: string): Promise<string>;
  };

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

export function makeFederation(options: FederationOptions): Federation {
  const { asOwner, keys, attempts, sessions, tokens, config, siteUrl } = options;
  const providers = makeProviders(asOwner, async () => keys);
  const protocols = makeProtocols(siteUrl);
  const stateStore = makeOAuthStateStore(asOwner);
  const auditRefusals = makeAuditFailures(asOwner);
  const completeSignIn = makeCompleteSignIn(sessions.open);
  const secondFactorStep = makeSecondFactorStep({ asOwner, attempts, completeSignIn, auditRefusals });
  const readRedirectTarget: ReadRedirectTarget = (requested) =>
    makeReadRedirectTarget(siteUrl(), config.signInRedirects)(requested);
  const shared = { asOwner, providers, protocols, stateStore, auditRefusals, readRedirectTarget };
  return {
    ...makeFederatedSignIn({ ...shared, completeSignIn, secondFactorStep }),
    ...makeFederatedSignOut(shared),
    list: async () => (await providers.list()).filter(({ enabled }) => enabled),
    finishWithCode: secondFactorStep.finish,
    exchangeCode: makeExchangeCode(asOwner, tokens),
    async metadata(name) {
      const provider = await providers.find(name);
      return asProviderError(() => protocols.samlOf(provider).metadata);
    },
  };
}

import type { TokenKeys } from "../../caller/keys.ts";
import type { Config } from "../../config/config.ts";
import type { AsOwner } from "../../database/as-owner.ts";
import type { Attempts } from "../attempts.ts";
import type { Sessions } from "../sessions.ts";
import type { Tokens } from "../tokens.ts";
import { makeAudited } from "./audit.ts";
import { type ExchangeCode, makeExchangeCode } from "./code-exchange.ts";
import { makeDepartures } from "./departures.ts";
import { makeLand } from "./landing.ts";
import { makeProtocols } from "./protocols.ts";
import { type ListedProvider, makeProviders } from "./providers.ts";
import { makeRedirectTargets, type RedirectTargets } from "./redirect-targets.ts";
import { inWords } from "./refusals.ts";
import { makeSecondFactor, type SecondFactor } from "./second-factor.ts";
import { makeSignIn, type SignIn } from "./sign-in.ts";
import { makeSignOut, type SignOut } from "./sign-out.ts";

/** Signing in through another provider. `browser` is the secret that the browser shows as a cookie of its own. */
export type Federation = SignIn &
  SignOut & {
    /** Those that users may sign in through. */
    list(): Promise<ListedProvider[]>;
    readonly finishWithCode: SecondFactor["land"];
    readonly exchangeCode: ExchangeCode;
    /** What a provider of SAML wants to know of us. */
    metadata(name: string): Promise<string>;
  };

type Options = {
  readonly asOwner: AsOwner;
  readonly keys: TokenKeys;
  readonly attempts: Attempts;
  readonly sessions: Pick<Sessions, "open">;
  readonly tokens: Pick<Tokens, "open">;
  readonly config: Pick<Config, "signInRedirects">;
  /** As clients write it: what they are sent to, and what providers are told, is made from it and from nothing else. */
  readonly siteUrl: () => string;
};

export function makeFederation(options: Options): Federation {
  const { asOwner, keys, attempts, sessions, tokens, config, siteUrl } = options;
  const providers = makeProviders(asOwner, async () => keys);
  const protocols = makeProtocols(siteUrl);
  const departures = makeDepartures(asOwner);
  const audited = makeAudited(asOwner);
  const land = makeLand(sessions.open);
  const secondFactor = makeSecondFactor({ asOwner, attempts, land, audited });
  const readTarget: RedirectTargets = (requested) => makeRedirectTargets(siteUrl(), config.signInRedirects)(requested);
  const shared = { asOwner, providers, protocols, departures, audited, readTarget };
  return {
    ...makeSignIn({ ...shared, land, secondFactor }),
    ...makeSignOut(shared),
    list: async () => (await providers.list()).filter(({ enabled }) => enabled),
    finishWithCode: secondFactor.land,
    exchangeCode: makeExchangeCode(asOwner, tokens),
    async metadata(name) {
      const provider = await providers.find(name);
      return inWords(() => protocols.samlOf(provider).metadata);
    },
  };
}

import { makeKeyFinder } from "../caller/api-keys.ts";
import { type Callers, makeCallers } from "../caller/caller.ts";
import { makeDatabaseTime } from "../caller/database-time.ts";
import { deploymentKeys } from "../caller/deployment-keys.ts";
import type { TokenKeys } from "../caller/keys.ts";
import type { Config } from "../config/config.ts";
import type { AsOwner } from "../database/as-owner.ts";
import type { Logger } from "../log.ts";
import type { EmailQueue } from "../mail/email-queue.ts";
import type { Hits } from "../recent-map.ts";
import { readOrMakeSecrets } from "../secrets.ts";
import { type Accounts, makeAccounts } from "./accounts.ts";
import { makePasswordReader } from "./password-reader.ts";
import { makeSessionReader } from "./session-reader.ts";
import { makeValidateClaims } from "./validate-claims.ts";

/** Authentication and accounts, with the current settings. */
export type SignInServices = {
  readonly keys: TokenKeys;
  readonly callers: Callers;
  /** Null if the database has no accounts. */
  readonly accounts: Accounts | null;
};

type Options = {
  readonly asOwner: AsOwner;
  readonly canSignIn: boolean;
  /** Null if this deployment sends no e-mails. */
  readonly emailQueue: EmailQueue | null;
  readonly siteUrl: () => string;
  /** Counts cache hits of verified tokens. */
  readonly hits?: Hits;
  readonly log: Logger;
};

/** The caches of API keys and accounts are kept when settings change. */
export function makeSignInServices(options: Options): (config: Config) => Promise<SignInServices> {
  const { asOwner, canSignIn, emailQueue, siteUrl, hits, log } = options;
  const findKey = makeKeyFinder({ asOwner, log });
  const validateClaims = makeValidateClaims({ asOwner, log });
  const databaseTime = makeDatabaseTime({ asOwner, log });
  return async (config) => {
    const keys = await deploymentKeys(config, readOrMakeSecrets);
    const accounts = canSignIn ? makeAccounts({ asOwner, keys, config, emailQueue, siteUrl }) : null;
    const readers = accounts ? [makeSessionReader(accounts.sessions), makePasswordReader(accounts)] : [];
    return {
      keys,
      accounts,
      callers: makeCallers({
        ...config,
        keys,
        findKey,
        objectionTo: validateClaims,
        databaseTime,
        readers,
        ...(hits && { hits }),
      }),
    };
  };
}

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
import { makeAccountStates } from "./account-states.ts";
import { type Accounts, makeAccounts } from "./accounts.ts";
import { readPasswords } from "./password-caller.ts";
import { readSessions } from "./session-caller.ts";

/** Who may ask, by the settings of now. */
export type Identification = {
  readonly keys: TokenKeys;
  readonly callers: Callers;
  /** Null: nobody can sign in here. */
  readonly accounts: Accounts | null;
};

type Options = {
  readonly asOwner: AsOwner;
  readonly canSignIn: boolean;
  /** Null: this deployment sends no mails. */
  readonly outbox: EmailQueue | null;
  readonly siteUrl: () => string;
  /** Of tokens that were shown before. */
  readonly hits?: Hits;
  readonly log: Logger;
};

/** What is known of API keys and of accounts is known under all settings. */
export function makeIdentification(options: Options): (config: Config) => Promise<Identification> {
  const { asOwner, canSignIn, outbox, siteUrl, hits, log } = options;
  const findKey = makeKeyFinder({ asOwner, log });
  const objectionTo = makeAccountStates({ asOwner, log });
  const databaseTime = makeDatabaseTime({ asOwner, log });
  return async (config) => {
    const keys = await deploymentKeys(config, readOrMakeSecrets);
    const accounts = canSignIn ? makeAccounts({ asOwner, keys, config, outbox, siteUrl }) : null;
    const readers = accounts ? [readSessions(accounts.sessions), readPasswords(accounts)] : [];
    return {
      keys,
      accounts,
      callers: makeCallers({ ...config, keys, findKey, objectionTo, databaseTime, readers, ...(hits && { hits }) }),
    };
  };
}

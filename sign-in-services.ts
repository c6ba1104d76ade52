import { type Accounts, makeAccounts, makePasswordReader, makeSessionReader } from "./engine/accounts/accounts.ts";
import { type Federation, makeFederation } from "./engine/accounts/federation/federation.ts";
import { makePasswords } from "./engine/accounts/passwords.ts";
import type { LimitSignUps } from "./engine/accounts/sign-up-limit.ts";
import { makeValidateClaims } from "./engine/accounts/validate-claims.ts";
import { memoize } from "./engine/cache/memoize.ts";
import type { CacheHits } from "./engine/cache/recent-map.ts";
import type { Config } from "./engine/config/config.ts";
import { DEFAULT_JWT_ISSUER } from "./engine/config/interface-settings.ts";
import type { AsOwner } from "./engine/database/owner-pool.ts";
import { makeFindApiKey } from "./engine/identity/api-key-lookup.ts";
import { type Authenticator, makeAuthenticator } from "./engine/identity/authenticator.ts";
import { makeDatabaseClock } from "./engine/identity/database-clock.ts";
import { RemoteKeySet } from "./engine/identity/remote-key-set.ts";
import { canIssueTokens, loadDeploymentKeys, type TokenKeys } from "./engine/identity/token-keys.ts";
import { makeSharedRateLimit } from "./engine/limits/rate-limits.ts";
import type { EmailQueue, MessageQueue } from "./engine/mail/email-queue.ts";
import type { WriteMail } from "./engine/mail/mail-templates.ts";
import type { TextMessage } from "./engine/mail/text-message-gateway.ts";
import type { Logger } from "./engine/output/log.ts";
import { readOrMakeSecrets } from "./engine/secrets.ts";

const ONE_HOUR = 3600;

/** Authentication and accounts, with the current settings. */
export type SignInServices = {
  readonly keys: TokenKeys;
  readonly authenticator: Authenticator;
  /** Null if the database has no accounts, or the settings have no key to sign tokens with. */
  readonly accounts: Accounts | null;
  /** Null if there are no accounts. */
  readonly federation: Federation | null;
};

type SignInServicesOptions = {
  readonly asOwner: AsOwner;
  readonly canSignIn: boolean;
  /** Null if this deployment sends no e-mails. */
  readonly emailQueue: EmailQueue | null;
  /** Null if this deployment sends no text messages. */
  readonly textMessages: MessageQueue<TextMessage> | null;
  readonly writeMail: WriteMail;
  readonly siteUrl: () => string;
  readonly limitSignUps: LimitSignUps;
  /** Counts cache hits of verified tokens. */
  readonly hits?: CacheHits;
  readonly log: Logger;
};

/** Returns the services for the current settings. The caches of API keys and accounts are kept when settings change. */
export function makeSignInServices(options: SignInServicesOptions): (config: Config) => Promise<SignInServices> {
  const { asOwner, canSignIn, emailQueue, textMessages, writeMail, siteUrl, limitSignUps, hits, log } = options;
  const findApiKey = makeFindApiKey({ asOwner, log });
  const validateClaims = makeValidateClaims({ asOwner, log });
  const databaseClock = makeDatabaseClock({ asOwner, log });
  const openRemoteKeys = memoize((url: string) => new RemoteKeySet({ url, log }));
  return async (config) => {
    const keys = await loadDeploymentKeys(config, readOrMakeSecrets);
    if (canSignIn && !canIssueTokens(keys)) {
      log.warn(
        "nobody can sign in here: the settings have only keys that verify tokens. Set JWT_PRIVATE_KEY to sign with",
      );
    }
    const codeEmails = {
      ...config,
      ...makeMailLimits(config, asOwner),
      writeMail,
      applicationUrl: () => config.applicationUrl ?? siteUrl(),
    };
    const passwords = makePasswords({ share: config.workerShare });
    const accounts =
      canSignIn && canIssueTokens(keys)
        ? makeAccounts({ asOwner, keys, config, passwords, emailQueue, codeEmails, textMessages, siteUrl })
        : null;
    const federation =
      accounts && canIssueTokens(keys)
        ? makeFederation({ ...accounts, asOwner, keys, config, siteUrl, limitSignUps, log })
        : null;
    const readers = accounts ? [makeSessionReader(accounts.sessions), makePasswordReader(accounts)] : [];
    return {
      keys,
      accounts,
      federation,
      authenticator: makeAuthenticator({
        ...config,
        keys,
        remoteKeys: config.jwtKeySetUrl === null ? null : openRemoteKeys(config.jwtKeySetUrl),
        requiredIssuer: config.jwtIssuer === DEFAULT_JWT_ISSUER ? null : config.jwtIssuer,
        findApiKey,
        validateClaims,
        databaseClock,
        readers,
        ...(hits && { hits }),
      }),
    };
  };
}

/** Limits of e-mails by their address. */
function makeMailLimits({ mailInterval, mailHourlyLimit }: Config, asOwner: AsOwner) {
  const limit = (name: string, points: number, seconds: number) =>
    points > 0 && seconds > 0 ? makeSharedRateLimit({ name, points, seconds, asOwner }) : null;
  return {
    intervalLimit: limit("mail interval", 1, mailInterval),
    hourlyLimit: limit("mail", mailHourlyLimit, ONE_HOUR),
  };
}

import {
  type Accounts,
  type HashParameters,
  type LimitSignUps,
  makeAccounts,
  makePasswordReader,
  makePasswords,
  makeSessionReader,
  makeSigners,
  makeValidateClaims,
  type Signers,
} from "#accounts";
import { type Federation, makeFederation } from "#accounts/federation";
import {
  type Authenticator,
  canIssueTokens,
  loadDeploymentKeys,
  makeAuthenticator,
  makeDatabaseClock,
  makeFindApiKey,
  makeProjectKeyReader,
  RemoteKeySet,
  resourceAddress,
  type TokenKeys,
} from "#accounts/identity";
import type { EmailQueue, MailTemplates, MessageQueue, TextMessage } from "#accounts/mail";
import { type Config, DEFAULT_JWT_ISSUER } from "#config";
import type { AsOwner } from "#postgres/database";
import { makeSharedRateLimit } from "#postgres/rate-limits";
import { type CacheHits, memoize, readOrMakeSecrets } from "#runtime";
import type { Logger } from "#runtime/log";

const ONE_HOUR = 3600;

/** Authentication and accounts, with the current settings. */
export type SignInServices = {
  readonly keys: TokenKeys;
  /** The keys of another issuer; null if there is none. */
  readonly remoteKeys: RemoteKeySet | null;
  readonly authenticator: Authenticator;
  /** The signers of signed addresses. */
  readonly signers: Signers;
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
  readonly mailTemplates: MailTemplates;
  readonly siteUrl: () => string;
  readonly limitSignUps: LimitSignUps;
  /** The cost of the hashes of passwords. */
  readonly passwordHash?: HashParameters;
  /** Counts cache hits of verified tokens. */
  readonly hits?: CacheHits;
  readonly log: Logger;
};

/** Returns the services for the current settings. The caches of API keys and accounts are kept when settings change. */
export function makeSignInServices(options: SignInServicesOptions): (config: Config) => Promise<SignInServices> {
  const { asOwner, canSignIn, emailQueue, textMessages, mailTemplates, siteUrl, limitSignUps, hits, log } = options;
  const { passwordHash: parameters } = options;
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
      mailTemplates,
      applicationUrl: () => config.applicationUrl ?? siteUrl(),
    };
    const passwords = makePasswords({ share: config.workerShare, ...(parameters && { parameters }) });
    const accounts =
      canSignIn && canIssueTokens(keys)
        ? makeAccounts({ asOwner, keys, config, passwords, emailQueue, codeEmails, textMessages, siteUrl })
        : null;
    const federation =
      accounts && canIssueTokens(keys)
        ? makeFederation({ ...accounts, asOwner, keys, config, siteUrl, limitSignUps, log })
        : null;
    const remoteKeys = config.jwtKeySetUrl === null ? null : openRemoteKeys(config.jwtKeySetUrl);
    const readers = accounts ? [makeSessionReader(accounts.sessions), makePasswordReader(accounts)] : [];
    return {
      keys,
      remoteKeys,
      accounts,
      federation,
      signers: makeSigners({ asOwner, keys, remoteKeys, config, log }),
      authenticator: makeAuthenticator({
        ...config,
        keys,
        remoteKeys,
        requiredIssuer: config.jwtIssuer === DEFAULT_JWT_ISSUER ? null : config.jwtIssuer,
        findApiKey,
        ...(canIssueTokens(keys) && { readProjectKey: makeProjectKeyReader(keys, config) }),
        validateClaims,
        databaseClock,
        readers,
        resourceAddress: (path) => resourceAddress(siteUrl(), path),
        ...(hits && { hits }),
      }),
    };
  };
}

/** Makes the limits of e-mails per address. */
function makeMailLimits({ mailInterval, mailHourlyLimit }: Config, asOwner: AsOwner) {
  const limit = (name: string, points: number, seconds: number) =>
    points > 0 && seconds > 0 ? makeSharedRateLimit({ name, points, seconds, asOwner }) : null;
  return {
    intervalLimit: limit("mail interval", 1, mailInterval),
    hourlyLimit: limit("mail", mailHourlyLimit, ONE_HOUR),
  };
}

import type { TokenKeys } from "../caller/keys.ts";
import type { Config } from "../config/config.ts";
import type { AsOwner } from "../database/as-owner.ts";
import type { EmailQueue } from "../mail/email-queue.ts";
import { type ApiKeys, makeApiKeys } from "./api-keys.ts";
import { makeAttempts } from "./attempts.ts";
import { type Factors, makeFactors } from "./factors.ts";
import { type Federation, makeFederation } from "./federation/federation.ts";
import { type Letters, makeLetters } from "./letters.ts";
import { type Login, makeLogin, makeLoginSteps, type Opening } from "./login.ts";
import { type MailLinks, makeMailLinks } from "./mail-links.ts";
import { type ChangePassword, makeChangePassword } from "./password-change.ts";
import { makePasswords, type Passwords } from "./passwords.ts";
import { makeRegister, type Register } from "./registration.ts";
import { makeSessions, type Sessions } from "./sessions.ts";
import { makeSteppedLogin, type SteppedLogin } from "./stepped-login.ts";
import { makeTokenMint } from "./token-mint.ts";
import { makeTokens, type Tokens } from "./tokens.ts";

/**
 * Signing in, whatever the interface. Who registers, logs in or changes the password says what is to be opened for them:
 * `tokens.open`, `sessions.open`, or nothing more than their claims (`identity`), as Postgres writes them.
 */
export type Accounts = {
  readonly register: Register;
  readonly login: Login;
  readonly steppedLogin: SteppedLogin;
  readonly changePassword: ChangePassword;
  readonly tokens: Tokens;
  readonly sessions: Sessions;
  readonly identity: Opening<string>;
  readonly factors: Factors;
  readonly mailLinks: MailLinks;
  /** Null: this deployment sends no mails. */
  readonly letters: Letters | null;
  readonly apiKeys: ApiKeys;
  readonly federation: Federation;
};

type Options = {
  readonly asOwner: AsOwner;
  readonly keys: TokenKeys;
  readonly config: Pick<Config, "jwtIssuer" | "jwtAudience" | "jwtRoleClaim" | "passwordPolicy" | "signInRedirects">;
  readonly passwords?: Passwords;
  readonly outbox?: EmailQueue | null;
  /** Where clients reach us, as links in mails say it, and providers are told. */
  readonly siteUrl: () => string;
};

export function makeAccounts(options: Options): Accounts {
  const { asOwner, keys, config, passwords = makePasswords(), outbox, siteUrl } = options;
  const attempts = makeAttempts(asOwner, passwords);
  const steps = makeLoginSteps(asOwner, passwords, attempts);
  const { passwordPolicy: policy, jwtIssuer: issuer } = config;
  const mailLinks = makeMailLinks({ asOwner, passwords, policy });
  const letters = outbox ? makeLetters({ mailLinks, outbox, siteUrl }) : null;
  const tokens = makeTokens(asOwner, makeTokenMint({ ...config, keys }));
  const sessions = makeSessions(asOwner);
  return {
    register: makeRegister({ asOwner, passwords, policy, letters }),
    login: makeLogin(steps),
    steppedLogin: makeSteppedLogin(steps, keys),
    changePassword: makeChangePassword({ asOwner, passwords, attempts, policy }),
    tokens,
    sessions,
    identity,
    factors: makeFactors({ asOwner, passwords, attempts, issuer }),
    mailLinks,
    letters,
    apiKeys: makeApiKeys(asOwner),
    federation: makeFederation({ asOwner, keys, attempts, sessions, tokens, config, siteUrl }),
  };
}

const identity: Opening<string> = async (client, userId) => {
  const { rows } = await client.query<{ claims: string }>("select auth.claims_of($1)::text as claims", [userId]);
  return rows[0]!.claims;
};

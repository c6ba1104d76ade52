import type { TokenKeys } from "../caller/keys.ts";
import type { Config } from "../config/config.ts";
import type { AsOwner } from "../database/as-owner.ts";
import type { EmailQueue } from "../mail/email-queue.ts";
import { type AccountEmails, makeAccountEmails } from "./account-emails.ts";
import { type ApiKeys, makeApiKeys } from "./api-keys.ts";
import { type EmailLinks, makeEmailLinks } from "./email-links.ts";
import { type Factors, makeFactors } from "./factors.ts";
import { type Federation, makeFederation } from "./federation/federation.ts";
import { makeLogin, makeLoginSteps, type OpenSignIn, type PerformLogin } from "./login.ts";
import { makeAttempts } from "./login-attempts.ts";
import { type MfaLogin, makeMfaLogin } from "./mfa-login.ts";
import { type ChangePassword, makeChangePassword } from "./password-change.ts";
import { makePasswords, type Passwords } from "./passwords.ts";
import {
  type FindRegistrationFaults,
  makeFindRegistrationFaults,
  makeRegister,
  type Register,
} from "./registration.ts";
import { makeSessions, type Sessions } from "./sessions.ts";
import { makeTokenIssuer } from "./token-issuer.ts";
import { makeTokens, type Tokens } from "./tokens.ts";

/**
 * Sign-in for all interfaces. The caller of `register`, `login` and `changePassword` passes what to create for the user:
 * `tokens.open`, `sessions.open`, or `readClaims` for the claims alone.
 */
export type Accounts = {
  readonly register: Register;
  readonly findRegistrationFaults: FindRegistrationFaults;
  readonly login: PerformLogin;
  readonly mfaLogin: MfaLogin;
  readonly changePassword: ChangePassword;
  readonly tokens: Tokens;
  readonly sessions: Sessions;
  readonly readClaims: OpenSignIn<string>;
  readonly factors: Factors;
  readonly emailLinks: EmailLinks;
  /** Null if this deployment sends no e-mails. */
  readonly emails: AccountEmails | null;
  readonly apiKeys: ApiKeys;
  readonly federation: Federation;
};

type Options = {
  readonly asOwner: AsOwner;
  readonly keys: TokenKeys;
  readonly config: Pick<Config, "jwtIssuer" | "jwtAudience" | "jwtRoleClaim" | "passwordPolicy" | "signInRedirects">;
  readonly passwords?: Passwords;
  readonly emailQueue?: EmailQueue | null;
  /** The public URL of the service, for links in e-mails and for providers. */
  readonly siteUrl: () => string;
};

export function makeAccounts(options: Options): Accounts {
  const { asOwner, keys, config, passwords = makePasswords(), emailQueue, siteUrl } = options;
  const attempts = makeAttempts(asOwner, passwords);
  const loginSteps = makeLoginSteps(asOwner, passwords, attempts);
  const { passwordPolicy: policy, jwtIssuer: issuer } = config;
  const emailLinks = makeEmailLinks({ asOwner, passwords, policy });
  const emails = emailQueue ? makeAccountEmails({ emailLinks, emailQueue, siteUrl }) : null;
  const tokens = makeTokens(asOwner, makeTokenIssuer({ ...config, keys }));
  const sessions = makeSessions(asOwner);
  return {
    register: makeRegister({ asOwner, passwords, policy, emails }),
    findRegistrationFaults: makeFindRegistrationFaults({ asOwner, policy }),
    login: makeLogin(loginSteps),
    mfaLogin: makeMfaLogin(loginSteps, keys),
    changePassword: makeChangePassword({ asOwner, passwords, attempts, policy }),
    tokens,
    sessions,
    readClaims,
    factors: makeFactors({ asOwner, passwords, attempts, issuer }),
    emailLinks,
    emails,
    apiKeys: makeApiKeys(asOwner),
    federation: makeFederation({ asOwner, keys, attempts, sessions, tokens, config, siteUrl }),
  };
}

const readClaims: OpenSignIn<string> = async (client, userId) => {
  const { rows } = await client.query<{ claims: string }>("select auth.claims_of($1)::text as claims", [userId]);
  return rows[0]!.claims;
};

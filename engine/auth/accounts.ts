import type { TokenKeys } from "../caller/keys.ts";
import type { Config } from "../config/config.ts";
import type { AsOwner } from "../database/as-owner.ts";
import { type ApiKeys, makeApiKeys } from "./api-keys.ts";
import { makeAttempts } from "./attempts.ts";
import { type Factors, makeFactors } from "./factors.ts";
import { type Login, makeLogin, type Opening } from "./login.ts";
import { type MailLinks, makeMailLinks } from "./mail-links.ts";
import { type ChangePassword, makeChangePassword } from "./password-change.ts";
import { makePasswords, type Passwords } from "./passwords.ts";
import { makeRegister, type Register } from "./registration.ts";
import { makeSessions, type Sessions } from "./sessions.ts";
import { makeTokenMint, type UserClaims } from "./token-mint.ts";
import { makeTokens, type Tokens } from "./tokens.ts";

/**
 * Signing in, whatever the interface. Who registers, logs in or changes the password says what is to be opened for them:
 * `tokens.open`, `sessions.open`, or nothing more than who they are (`identity`).
 */
export type Accounts = {
  readonly register: Register;
  readonly login: Login;
  readonly changePassword: ChangePassword;
  readonly tokens: Tokens;
  readonly sessions: Sessions;
  readonly identity: Opening<UserClaims>;
  readonly factors: Factors;
  readonly mailLinks: MailLinks;
  readonly apiKeys: ApiKeys;
};

type Options = {
  readonly asOwner: AsOwner;
  readonly keys: TokenKeys;
  readonly config: Pick<Config, "jwtIssuer" | "jwtAudience" | "jwtRoleClaim" | "passwordPolicy">;
  readonly passwords?: Passwords;
};

export function makeAccounts({ asOwner, keys, config, passwords = makePasswords() }: Options): Accounts {
  const attempts = makeAttempts(asOwner, passwords);
  const { passwordPolicy: policy, jwtIssuer: issuer } = config;
  return {
    register: makeRegister(asOwner, passwords, policy),
    login: makeLogin(asOwner, passwords, attempts),
    changePassword: makeChangePassword({ asOwner, passwords, attempts, policy }),
    tokens: makeTokens(asOwner, makeTokenMint({ ...config, keys })),
    sessions: makeSessions(asOwner),
    identity,
    factors: makeFactors({ asOwner, passwords, attempts, issuer }),
    mailLinks: makeMailLinks({ asOwner, passwords, policy }),
    apiKeys: makeApiKeys(asOwner),
  };
}

const identity: Opening<UserClaims> = async (client, userId) => {
  const { rows } = await client.query<{ claims: UserClaims }>("select auth.claims_of($1) as claims", [userId]);
  return rows[0]!.claims;
};

import type { Config } from "#config";
import type { AsOwner } from "#postgres/database";
import { type AccountLinks, makeAccountLinks } from "./account-links.ts";
import { Administration } from "./administration.ts";
import { type ApiKeys, makeApiKeys } from "./api-keys.ts";
import { type AuthSessions, makeAuthSessions } from "./auth-sessions.ts";
import { makeClaimsHook } from "./claims-hook.ts";
import { type CodeEmailSettings, type CodeEmails, countMessage, makeCodeEmails } from "./code-emails.ts";
import { type ChangePassword, type ConfirmPassword, makePasswordConfirmation } from "./confirm-password.ts";
import { type AccountEmails, type EmailLinks, makeAccountEmails, makeEmailLinks } from "./email-links.ts";
import { Factors } from "./factors.ts";
import { type FlowStates, makeFlowStates } from "./flow-states.ts";
import type { CredentialReader } from "./identity/authenticator.ts";
import { callerFromClaims } from "./identity/caller.ts";
import { parseClaims, serializeClaims } from "./identity/claims.ts";
import type { ClientInfo } from "./identity/client-info.ts";
import { LIFETIMES } from "./identity/lifetimes.ts";
import type { IssuingKeys } from "./identity/token-keys.ts";
import { type Invitations, makeInvitations } from "./invitations.ts";
import {
  type MfaLogin,
  makeLogin,
  makeLoginSteps,
  makeMfaLogin,
  makePasswordLogin,
  type OpenSignIn,
  type PerformLogin,
} from "./login.ts";
import { LoginAttempts } from "./login-attempts.ts";
import type { EmailQueue, MessageQueue } from "./mail/email-queue.ts";
import { makeTemplateAdministration, type TemplateAdministration } from "./mail/template-administration.ts";
import type { TextMessage } from "./mail/text-message-gateway.ts";
import { makeOAuthTokens, type OAuthTokens } from "./oauth-tokens.ts";
import { makeOneTimeCodes, type OneTimeCodes } from "./one-time-codes.ts";
import { makeOwnAccount, type OwnAccount } from "./own-account.ts";
import { makePasskeys, type Passkeys } from "./passkeys.ts";
import { makePasswords, type Passwords } from "./passwords.ts";
import { makePhoneAccounts, type PhoneAccounts } from "./phone-accounts.ts";
import { digestOf } from "./random-secrets.ts";
import { makeRegistration, type Registration } from "./registration.ts";
import { makeSecondFactors, type SecondFactors } from "./second-factors.ts";
import { makeSessions, type Sessions } from "./sessions.ts";
import { makeTokenIssuer, makeTokenPairs, type SessionTokens, type TokenPairs } from "./token-pairs.ts";
import { makeUpdateUser, type UpdateUser } from "./update-user.ts";
import { SESSION_CLAIM } from "./validate-claims.ts";
import { makeWebAuthn } from "./webauthn.ts";

/** The query reads the catalogue, so it does not fail if the schema does not exist or is not accessible. */
const HAS_ACCOUNTS = `
  select from pg_catalog.pg_class
  where relnamespace = (select oid from pg_catalog.pg_namespace where nspname = 'auth') and relname = 'users'
    and pg_catalog.has_schema_privilege(relnamespace, 'usage') and pg_catalog.has_table_privilege(oid, 'insert')
    and exists (select from pg_catalog.pg_proc where pronamespace = relnamespace and proname = 'find_account')`;

/**
 * Sign-in for all interfaces. The caller of `register`, `login` and `changePassword` passes what to create for the user:
 * `tokens.open`, `sessions.open`, or `readClaims` for the claims alone.
 */
export type Accounts = Registration & {
  readonly login: PerformLogin;
  readonly passwordLogin: PerformLogin;
  readonly mfaLogin: MfaLogin;
  readonly confirmPassword: ConfirmPassword;
  readonly changePassword: ChangePassword;
  readonly own: OwnAccount;
  readonly updateUser: UpdateUser;
  /** Returns the operations of an administrator, who is recorded as that client. */
  administrationBy(clientInfo: ClientInfo): Administration;
  readonly links: AccountLinks;
  readonly invitations: Invitations;
  /** Null if this deployment sends no e-mails with links and codes. */
  readonly templateAdministration: TemplateAdministration | null;
  readonly tokens: TokenPairs;
  readonly authSessions: AuthSessions;
  /** Tokens for clients of Supabase Auth. */
  readonly sessionTokens: TokenPairs<SessionTokens>;
  readonly sessions: Sessions;
  readonly readClaims: OpenSignIn<string>;
  /** The authenticator app of the documented routes and the account page. */
  readonly factors: Factors;
  readonly secondFactors: SecondFactors;
  readonly passkeys: Passkeys;
  readonly emailLinks: EmailLinks;
  /** Null if this deployment sends no e-mails. */
  readonly emails: AccountEmails | null;
  readonly codes: OneTimeCodes;
  readonly flows: FlowStates;
  /** Null if this deployment sends no e-mails. */
  readonly codeEmails: CodeEmails | null;
  /** Null if this deployment sends no text messages. */
  readonly phones: PhoneAccounts | null;
  readonly apiKeys: ApiKeys;
  /** Tokens for applications that act for users. */
  readonly oauthTokens: OAuthTokens;
  /** Also counts the attempts of federated sign-ins. */
  readonly attempts: LoginAttempts;
};

type AccountsOptions = {
  readonly asOwner: AsOwner;
  readonly keys: IssuingKeys;
  readonly config: Pick<
    Config,
    "jwtAudience" | "jwtRoleClaim" | "authSubject" | "passwordPolicy" | "autoConfirm" | "passwordReauthentication"
  > &
    Partial<Pick<Config, "claimsHook" | "oauthAccessSeconds">> &
    Parameters<typeof makeWebAuthn>[0]["config"];
  readonly passwords?: Passwords;
  readonly emailQueue?: EmailQueue | null;
  readonly codeEmails?: CodeEmailSettings | null;
  readonly textMessages?: MessageQueue<TextMessage> | null;
  /** The public URL of the service, for links in e-mails. */
  readonly siteUrl: () => string;
};

export function makeAccounts(options: AccountsOptions): Accounts {
  const { asOwner, keys, config, passwords = makePasswords(), emailQueue, siteUrl } = options;
  const attempts = new LoginAttempts(asOwner, passwords);
  const loginSteps = makeLoginSteps(passwords, attempts);
  const { passwordPolicy: policy, jwtIssuer } = config;
  const emailLinks = makeEmailLinks({ asOwner, passwords, policy });
  const emails = emailQueue ? makeAccountEmails({ emailLinks, emailQueue, siteUrl }) : null;
  const issuer = makeTokenIssuer({ ...config, keys });
  const flows = makeFlowStates(asOwner);
  const codes = makeOneTimeCodes({ asOwner, keys, flows });
  const codeSettings = options.codeEmails ?? null;
  const claimsHook = config.claimsHook ? makeClaimsHook(config.claimsHook) : null;
  const sessions = makeSessions(asOwner);
  const own = makeOwnAccount(asOwner);
  const kind = issuer.sessionTokens;
  const sessionTokens = makeTokenPairs({ asOwner, issuer, kind, claimsHook, hasReuseWindow: true });
  const codeEmails =
    emailQueue && codeSettings
      ? makeCodeEmails({ ...codeSettings, asOwner, codes, flows, emailQueue, serviceUrl: siteUrl })
      : null;
  const webAuthn = makeWebAuthn({ config, siteUrl });
  const registration = makeRegistration({ asOwner, passwords, policy, emails, autoConfirm: config.autoConfirm });
  return {
    ...registration,
    login: makeLogin(loginSteps),
    passwordLogin: makePasswordLogin(loginSteps),
    mfaLogin: makeMfaLogin(loginSteps, keys),
    ...makePasswordConfirmation({ asOwner, passwords, attempts, policy }),
    own,
    authSessions: makeAuthSessions({ sessionTokens, readUser: own.readJson, autoConfirm: config.autoConfirm }),
    updateUser: makeUpdateUser({
      asOwner,
      passwords,
      policy,
      codes,
      codeEmails,
      autoConfirm: config.autoConfirm,
      requiresCode: config.passwordReauthentication,
    }),
    tokens: makeTokenPairs({ asOwner, issuer, kind: issuer.pairs, claimsHook, hasReuseWindow: false }),
    sessionTokens,
    administrationBy: (clientInfo) => new Administration({ asOwner, policy, passwords, clientInfo }),
    links: makeAccountLinks({
      ...{ asOwner, passwords, policy, codes, codeEmails },
      secureEmailChange: codeSettings?.secureEmailChange ?? true,
      serviceUrl: siteUrl,
    }),
    invitations: makeInvitations({
      ...{ asOwner, passwords, policy, siteUrl, settings: codeSettings },
      emailQueue: emailQueue ?? null,
    }),
    templateAdministration:
      codeSettings &&
      makeTemplateAdministration({
        ...{ asOwner, templates: codeSettings.mailTemplates, applicationUrl: codeSettings.applicationUrl },
        emailQueue: emailQueue ?? null,
      }),
    sessions,
    readClaims,
    factors: new Factors({ asOwner, passwords, attempts, issuer: jwtIssuer }),
    secondFactors: makeSecondFactors({ asOwner, attempts, webAuthn }),
    passkeys: makePasskeys({ asOwner, webAuthn }),
    emailLinks,
    emails,
    codes,
    flows,
    codeEmails,
    phones: makePhones(options, { asOwner, codes, ...registration }),
    apiKeys: makeApiKeys(asOwner),
    oauthTokens: makeOAuthTokens({
      ...{ keys, tokens: issuer, claimsHook, siteUrl },
      config: { oauthAccessSeconds: LIFETIMES.accessToken, ...config },
    }),
    attempts,
  };
}

function makePhones(
  { textMessages: queue, codeEmails: limits }: Pick<AccountsOptions, "textMessages" | "codeEmails">,
  options: Pick<Parameters<typeof makePhoneAccounts>[0], "asOwner" | "codes" | "signUp">,
): PhoneAccounts | null {
  if (!queue || !limits) return null;
  return makePhoneAccounts({ ...options, queue, count: (kind, address) => countMessage(limits, kind, address) });
}

const readClaims: OpenSignIn<string> = async (client, userId) => {
  const { rows } = await client.query<{ claims: string }>("select auth.token_claims($1)::pg_catalog.text as claims", [
    userId,
  ]);
  return rows[0]!.claims;
};

/** True if users can sign in: this login owns the accounts of our migrations, not only a table of that name. */
export async function hasAccounts(asOwner: AsOwner): Promise<boolean> {
  const { rowCount } = await asOwner((client) => client.query(HAS_ACCOUNTS));
  return rowCount === 1;
}

/** Authenticates a session cookie. An ended session counts as none, because the browser keeps sending its cookie. */
export function makeSessionReader(sessions: Pick<Sessions, "use">): CredentialReader {
  return async ({ session }) => {
    const liveSession = session ? await sessions.use(session) : null;
    if (!liveSession) return null;
    const digest = digestOf(session!).toString("hex");
    const claimsText = serializeClaims({ ...parseClaims(liveSession.claimsText), [SESSION_CLAIM]: digest });
    return callerFromClaims({ kind: "session", claimsText, expiresAt: liveSession.expiresAt.getTime() / 1000 });
  };
}

/** Authenticates Basic credentials. Each request is a login attempt, throttled like any other. */
export function makePasswordReader({ login, readClaims }: Pick<Accounts, "login" | "readClaims">): CredentialReader {
  return async ({ login: credentials }) => {
    if (!credentials) return null;
    const { username, password, clientInfo } = credentials;
    const claimsText = await login({ username, password }, clientInfo, readClaims);
    return callerFromClaims({ kind: "known", claimsText, expiresAt: null });
  };
}

import { timingSafeEqual } from "node:crypto";
import type pg from "pg";
import { ApiError, decryptBytes, encryptBytes } from "#runtime";
import { accountDisabled, codeRequired, signInAgain, wrongCodeAtLogin, wrongCredentials } from "./auth-errors.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "./identity/client-info.ts";
import { LIFETIMES } from "./identity/lifetimes.ts";
import { deriveEncryptionKey, type IssuingKeys } from "./identity/token-keys.ts";
import {
  type FactorProof,
  type LoginAttempt,
  type LoginAttempts,
  NO_PROOF,
  type PasswordCheck,
  requesterOf,
} from "./login-attempts.ts";
import { checkLength } from "./password-policy.ts";
import type { Passwords } from "./passwords.ts";
import { digestOf } from "./random-secrets.ts";

type LoginCredentials = {
  /** The user name or the e-mail address. */
  readonly username: string;
  readonly password: string;
  /** A code of the authenticator app, or a backup code. */
  readonly code?: string | null | undefined;
};

/** The proof of a user's identity: the claims `amr` and `aal` of Supabase Auth. */
export type SignInProof = {
  readonly methods: readonly SignInMethod[];
  readonly aal: 1 | 2;
  /** True if the second factor of the account, if there is one, was required before: its tokens may act everywhere. */
  readonly isComplete?: boolean;
};

export type SignInMethod =
  | "anonymous"
  | "email_change"
  | "email/signup"
  | "invite"
  | "magiclink"
  | "oauth"
  | "otp"
  | "passkey"
  | "password"
  | "recovery"
  | "sso/saml"
  | "totp"
  | "webauthn";

export const NO_SIGN_IN_PROOF: SignInProof = { methods: [], aal: 1, isComplete: true };
export const PASSWORD_PROOF: SignInProof = { methods: ["password"], aal: 1 };
/** The proof by a link or a code that was sent to the user. */
export const CODE_PROOF: SignInProof = { methods: ["otp"], aal: 1 };

/** Creates the session or tokens, in the transaction that verified the login. */
export type OpenSignIn<T> = (
  client: pg.ClientBase,
  userId: string,
  clientInfo: ClientInfo,
  proof?: SignInProof,
) => Promise<T>;

export type PerformLogin = <T>(
  credentials: LoginCredentials,
  clientInfo: ClientInfo,
  open: OpenSignIn<T>,
) => Promise<T>;

type LoginOutcome = "passed" | "password" | "disabled" | "code_missing" | "code";

/** The maximum length of an e-mail address. */
const MAX_NAME_LENGTH = 254;
const LOGIN_ERRORS: Readonly<Record<Exclude<LoginOutcome, "passed">, () => ApiError>> = {
  password: wrongCredentials,
  disabled: accountDisabled,
  code_missing: codeRequired,
  code: wrongCodeAtLogin,
};

/** The steps of a login, which may take one request or two. */
type LoginSteps = {
  /** Counts an attempt and checks the password. Unknown users take the same steps, so that the timing does not differ. */
  begin(credentials: Pick<LoginCredentials, "username" | "password">, clientInfo: ClientInfo): Promise<LoginAttempt>;
  /** Resumes a login whose password was sent before: `isPasswordCorrect` checks that it has not changed since. */
  resume(
    username: string,
    isPasswordCorrect: (attempt: LoginAttempt) => boolean,
    clientInfo: ClientInfo,
  ): Promise<LoginAttempt>;
  finish<T>(attempt: LoginAttempt, factors: SubmittedFactors, open: OpenSignIn<T>): Promise<LoginResult<T>>;
};

type SubmittedFactors = {
  readonly code: LoginCredentials["code"];
  readonly password: string | null;
  /** True if the user may be signed in before a second factor is verified. */
  readonly isCodeOptional?: boolean;
};
type LoginResult<T> =
  | { readonly outcome: "passed"; readonly opened: T }
  | { readonly outcome: Exclude<LoginOutcome, "passed"> };

export function makeLoginSteps(passwords: Passwords, attempts: LoginAttempts): LoginSteps {
  const beginAttempt = async (
    username: string,
    check: PasswordCheck,
    clientInfo: ClientInfo,
  ): Promise<LoginAttempt> => {
    checkNameLength(username);
    const attempt = await attempts.begin(username, clientInfo, check);
    if (!attempt) throw wrongCredentials();
    return attempt;
  };

  const upgradedHash = (attempt: LoginAttempt, password: string): Promise<string | null> =>
    attempts.withdrawOnError(attempt, async () =>
      passwords.isOutdated(attempt.passwordHash!) ? passwords.hash(password, requesterOf(attempt)) : null,
    );

  const proofOf = async (attempt: LoginAttempt, code: LoginCredentials["code"]): Promise<FactorProof> => {
    if (!attempt.hasFactor || !code) return NO_PROOF;
    const proof = await attempts.verifyCode(attempt, code);
    if (proof) return proof;
    await attempts.fail(attempt, "code");
    throw wrongCodeAtLogin();
  };

  return {
    async begin({ username, password }, clientInfo) {
      checkLength(password, "password");
      const isPasswordCorrect = (attempt: LoginAttempt) => attempts.hasPassword(attempt, password);
      return beginAttempt(username, { isPasswordCorrect, hasProof: false }, clientInfo);
    },
    resume: (username, isPasswordCorrect, clientInfo) =>
      beginAttempt(username, { isPasswordCorrect, hasProof: true }, clientInfo),
    async finish(attempt, { code, password, isCodeOptional = false }, open) {
      const proof = await proofOf(attempt, code);
      const newHash = password === null ? null : await upgradedHash(attempt, password);
      return attempts.inTransaction(requesterOf(attempt), async (client) => {
        const outcome = await passLogin(client, attempt, proof);
        if (outcome !== "passed" && !(outcome === "code_missing" && isCodeOptional)) return { outcome };
        if (newHash) await storeUpgradedHash(client, attempt, newHash);
        const signIn: SignInProof = proof === NO_PROOF ? PASSWORD_PROOF : { methods: ["totp", "password"], aal: 2 };
        return { outcome: "passed", opened: await open(client, attempt.userId!, attempt.clientInfo, signIn) };
      });
    },
  };
}

export function makeLogin({ begin, finish }: LoginSteps): PerformLogin {
  return async ({ username, password, code }, clientInfo, open) => {
    const attempt = await begin({ username, password }, clientInfo);
    return resultOrThrow(await finish(attempt, { code, password }, open));
  };
}

/** Signs in by the password alone. AUTH_AAL1_ACCESS limits the tokens of an account with a second factor until that factor is verified. */
export function makePasswordLogin({ begin, finish }: LoginSteps): PerformLogin {
  return async ({ username, password }, clientInfo, open) => {
    const attempt = await begin({ username, password }, clientInfo);
    return resultOrThrow(await finish(attempt, { code: null, password, isCodeOptional: true }, open));
  };
}

function resultOrThrow<T>(result: LoginResult<T>): T {
  if (result.outcome === "passed") return result.opened;
  throw LOGIN_ERRORS[result.outcome]();
}

async function passLogin(
  client: pg.ClientBase,
  attempt: LoginAttempt,
  { factorSecret, step, backupCodeHash }: FactorProof,
): Promise<LoginOutcome> {
  const { clientInfo, countedName, userId, passwordHash } = attempt;
  const { rows } = await client.query<{ outcome: LoginOutcome }>(
    `select auth.pass_login($2, $3, $4, $5, $6, $7, ${CLIENT_INFO_SQL}) as outcome`,
    [clientInfoParameter(clientInfo), countedName, userId, passwordHash, factorSecret, step, backupCodeHash],
  );
  return rows[0]!.outcome;
}

async function storeUpgradedHash(
  client: pg.ClientBase,
  { userId, passwordHash }: LoginAttempt,
  newHash: string,
): Promise<void> {
  await client.query("select auth.renew_password_hash($1, $2, $3)", [userId, passwordHash, newHash]);
}

function checkNameLength(username: string): void {
  if (username.length <= MAX_NAME_LENGTH) return;
  const message = `A user name has at most ${MAX_NAME_LENGTH} characters.`;
  throw new ApiError("invalid", "VALIDATION_ERROR", message, { details: [{ field: "username", message }] });
}

/** A login in two requests: the password first, then the code if the account requires one. */
export type MfaLogin = {
  begin<T>(
    credentials: Omit<LoginCredentials, "code">,
    clientInfo: ClientInfo,
    open: OpenSignIn<T>,
  ): Promise<MfaLoginResult<T>>;
  finish<T>(pending: string, code: string, clientInfo: ClientInfo, open: OpenSignIn<T>): Promise<T>;
};

/** The pending login is encrypted and stored by the browser, so that any gateway can continue it. */
type MfaLoginResult<T> =
  | { readonly kind: "opened"; readonly opened: T }
  | { readonly kind: "code"; readonly pending: string };

/** `passwordDigest` is a digest of the password hash, so that changing the password invalidates the pending login. */
type PendingLogin = { readonly username: string; readonly passwordDigest: string; readonly until: number };

export function makeMfaLogin({ begin, resume, finish }: LoginSteps, { signing }: IssuingKeys): MfaLogin {
  const key = deriveEncryptionKey(signing, "pending sign-in");

  const encryptPending = (username: string, attempt: LoginAttempt): string => {
    const until = Date.now() + LIFETIMES.pendingSignIn * 1000;
    const pending: PendingLogin = {
      username,
      passwordDigest: digestOf(attempt.passwordHash!).toString("hex"),
      until,
    };
    return encryptBytes([JSON.stringify(pending)], key).toString("base64url");
  };

  const decryptPending = (text: string): PendingLogin => {
    try {
      const pending: PendingLogin = JSON.parse(decryptBytes(Buffer.from(text, "base64url"), key).toString("utf8"));
      if (Date.now() < pending.until) return pending;
    } catch {
      // The state is from another deployment, or forged: it is refused like an expired one.
    }
    throw signInAgain();
  };

  return {
    async begin(credentials, clientInfo, open) {
      const attempt = await begin(credentials, clientInfo);
      const result = await finish(attempt, { code: null, password: credentials.password }, open);
      if (result.outcome === "code_missing")
        return { kind: "code", pending: encryptPending(credentials.username, attempt) };
      return { kind: "opened", opened: resultOrThrow(result) };
    },

    async finish(text, code, clientInfo, open) {
      const { username, passwordDigest } = decryptPending(text);
      const attempt = await resume(username, (attempt) => isSamePassword(passwordDigest, attempt), clientInfo);
      return resultOrThrow(await finish(attempt, { code, password: null }, open));
    },
  };
}

function isSamePassword(digest: string, { passwordHash }: LoginAttempt): boolean {
  return passwordHash !== null && timingSafeEqual(digestOf(passwordHash), Buffer.from(digest, "hex"));
}

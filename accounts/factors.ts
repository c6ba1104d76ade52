import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { ApiError } from "#runtime";
import { secondFactorRequired, wrongCode } from "./auth-errors.ts";
import { matchTimeStep, newBackupCodes, newTotpSecret, normalizeTotpCode, totpUri } from "./factor-codes.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "./identity/client-info.ts";
import type { FactorProof, LoginAttempt, LoginAttempts } from "./login-attempts.ts";
import type { Passwords } from "./passwords.ts";
import type { SignInRequester } from "./sign-in-limiter.ts";
import type { CredentialSignIn } from "./validate-claims.ts";

export type FactorEnrolment = {
  /** The secret in base32, for manual entry. */
  readonly secret: string;
  readonly uri: string;
  /** A PNG as a data: URL. */
  readonly qrCode: string;
};

type BackupCodes = { readonly backupCodes: readonly string[] };

type FactorsOptions = {
  readonly asOwner: AsOwner;
  readonly passwords: Passwords;
  readonly attempts: LoginAttempts;
  /** The name that the app shows beside the user name. */
  readonly issuer: string;
};
type FactorOutcome = "used" | "wrong" | "none" | "missing";

const UNKNOWN_SIGN_IN: CredentialSignIn = { sessionId: null, sessionDigest: null };
const ENROLL_FACTOR = `select auth.enroll_factor($2, $3, ${CLIENT_INFO_SQL}, $4) as username`;
const ENABLE_FACTOR = `select auth.enable_factor($2, $3, $4, $5, ${CLIENT_INFO_SQL}, $6, $7) as enabled`;
const DISABLE_FACTOR = `select auth.disable_factor($2, $3, $4, $5, $6, ${CLIENT_INFO_SQL}) as outcome`;
const PENDING_ENROLMENT = `
  select factor.secret, account.username
  from auth.mfa_factors as factor join auth.users as account using (user_id)
  where user_id = $1 and state = 'pending' and factor_type = 'totp'
  order by factor.created_at desc limit 1`;
const RENEW_BACKUP_CODES = `select auth.renew_backup_codes($2, $3, $4, $5, $6, $7, ${CLIENT_INFO_SQL}) as outcome`;

/** The authenticator app (TOTP) of a user. Its states are: not enrolled -> pending -> enabled. */
export class Factors {
  readonly #options: FactorsOptions;

  constructor(options: FactorsOptions) {
    this.#options = options;
  }

  /** If the account has a security key, the sign-in must have proved it. */
  async enroll(userId: string, clientInfo: ClientInfo, signIn = UNKNOWN_SIGN_IN): Promise<FactorEnrolment> {
    const { asOwner, issuer } = this.#options;
    const secret = newTotpSecret();
    const values = [clientInfoParameter(clientInfo), userId, secret, signIn.sessionId];
    const { rows } = await inOwnerTransaction(asOwner, (client) =>
      client.query<{ username: string | null }>(ENROLL_FACTOR, values),
    );
    const { username } = rows[0]!;
    if (username === null) throw secondFactorRequired();
    return toEnrolment(secret, issuer, username);
  }

  /** The enrolment that waits for its first code; null if there is none. */
  async pendingEnrolment(userId: string): Promise<FactorEnrolment | null> {
    const { asOwner, issuer } = this.#options;
    const { rows } = await asOwner((client) =>
      client.query<{ secret: string; username: string }>(PENDING_ENROLMENT, [userId]),
    );
    return rows[0] ? toEnrolment(rows[0].secret, issuer, rows[0].username) : null;
  }

  /**
   * The first code proves that the app has the secret. Returns the backup codes, which are stored as hashes only. The first
   * factor of an account ends its other sign-ins.
   */
  async enable(
    userId: string,
    code: string,
    clientInfo: ClientInfo,
    { sessionId, sessionDigest } = UNKNOWN_SIGN_IN,
  ): Promise<BackupCodes> {
    const { rows: pending } = await this.#options.asOwner((client) =>
      client.query<{ secret: string }>(PENDING_ENROLMENT, [userId]),
    );
    if (!pending[0]) throw enrolmentNotFound();
    const { secret } = pending[0];
    const digits = normalizeTotpCode(code);
    const step = digits === null ? null : await matchTimeStep(secret, digits);
    if (step === null) throw wrongCode();
    const backupCodes = newBackupCodes();
    const hashes = await this.#hashAll(backupCodes, { ...clientInfo, account: userId, isKnown: true });
    const values = [clientInfoParameter(clientInfo), userId, secret, step, hashes, sessionId, sessionDigest];
    const { rows } = await inOwnerTransaction(this.#options.asOwner, (client) =>
      client.query<{ enabled: boolean | null }>(ENABLE_FACTOR, values),
    );
    const { enabled } = rows[0]!;
    if (enabled === null) throw secondFactorRequired();
    if (!enabled) throw enrolmentNotFound();
    return { backupCodes };
  }

  /** Requires a code of the app or a backup code. */
  async disable(userId: string, code: string, clientInfo: ClientInfo): Promise<void> {
    const { attempt, proof } = await this.#verifyFactor(userId, code, clientInfo);
    await this.#useProof(DISABLE_FACTOR, attempt, proof);
  }

  async renewBackupCodes(userId: string, code: string, clientInfo: ClientInfo): Promise<BackupCodes> {
    const { attempt, proof } = await this.#verifyFactor(userId, code, clientInfo);
    const backupCodes = newBackupCodes();
    const hashes = await this.#options.attempts.withdrawOnError(attempt, () =>
      this.#hashAll(backupCodes, { ...clientInfo, account: userId, isKnown: true }),
    );
    await this.#useProof(RENEW_BACKUP_CODES, attempt, proof, hashes);
    return { backupCodes };
  }

  /** Uses one salt for all codes, so that verifying a code takes one hash. */
  async #hashAll(codes: readonly string[], requester: SignInRequester): Promise<string[]> {
    const { passwords } = this.#options;
    const [first, ...others] = codes;
    const hash = await passwords.hash(first!, requester);
    return [hash, ...(await Promise.all(others.map((code) => passwords.hashLike(hash, code, requester))))];
  }

  /** Verifies a code; the statement that follows marks it as used. */
  async #verifyFactor(
    userId: string,
    code: string,
    clientInfo: ClientInfo,
  ): Promise<{ attempt: LoginAttempt; proof: FactorProof }> {
    const { attempts } = this.#options;
    const attempt = await attempts.beginFor(userId, clientInfo);
    if (attempt.factorSecrets.length === 0) {
      await attempts.withdraw(attempt);
      throw factorNotEnabled();
    }
    const proof = await attempts.verifyCode(attempt, code);
    if (proof) return { attempt, proof };
    await attempts.fail(attempt, "code");
    throw wrongCode();
  }

  async #useProof(statement: string, attempt: LoginAttempt, proof: FactorProof, ...more: unknown[]): Promise<void> {
    const { clientInfo, countedName, userId } = attempt;
    const { factorSecret, step, backupCodeHash } = proof;
    const values = [clientInfoParameter(clientInfo), countedName, userId, factorSecret, step, backupCodeHash, ...more];
    const { rows } = await inOwnerTransaction(this.#options.asOwner, (client) =>
      client.query<{ outcome: FactorOutcome }>(statement, values),
    );
    const { outcome } = rows[0]!;
    if (outcome !== "used") throw outcome === "wrong" ? wrongCode() : factorNotEnabled();
  }
}

async function toEnrolment(secret: string, issuer: string, username: string): Promise<FactorEnrolment> {
  const uri = totpUri(secret, issuer, username);
  const { toDataURL } = await import("qrcode");
  return { secret, uri, qrCode: await toDataURL(uri) };
}

function enrolmentNotFound(): ApiError {
  return new ApiError("invalid", "VALIDATION_ERROR", "There is no enrolment to verify.", {
    hint: "Start the enrolment first: POST /api/mfa/enable returns the secret for the authenticator app.",
  });
}

function factorNotEnabled(): ApiError {
  return new ApiError("invalid", "VALIDATION_ERROR", "No authenticator app is enabled for this account.");
}

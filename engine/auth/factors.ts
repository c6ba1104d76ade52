import { toDataURL } from "qrcode";
import { type AsOwner, inTransaction } from "../database/as-owner.ts";
import { ApiError } from "../errors.ts";
import type { Attempt, Attempts, Proof } from "./attempts.ts";
import { newBackupCodes, totpCode } from "./codes.ts";
import type { Passwords } from "./passwords.ts";
import { wrongCode } from "./refusals.ts";
import { SENDER, type Sender, senderValue } from "./sender.ts";
import { newTotpSecret, stepOf, totpUri } from "./totp.ts";

export type Enrolment = {
  /** In base32, for who cannot scan. */
  readonly secret: string;
  readonly uri: string;
  /** A PNG as a data: URL. */
  readonly qrCode: string;
};

/** The authenticator app of a user: not enrolled -> pending -> enabled. */
export type Factors = {
  enroll(userId: string, sender: Sender): Promise<Enrolment>;
  /** The first code proves that the app has the secret. The backup codes are told this once. */
  enable(userId: string, code: string, sender: Sender): Promise<{ readonly backupCodes: readonly string[] }>;
  /** For who shows a code of the app, or a backup code. */
  disable(userId: string, code: string, sender: Sender): Promise<void>;
  renewBackupCodes(userId: string, code: string, sender: Sender): Promise<{ readonly backupCodes: readonly string[] }>;
};

type Options = {
  readonly asOwner: AsOwner;
  readonly passwords: Passwords;
  readonly attempts: Attempts;
  /** What the app shows beside the user's name. */
  readonly issuer: string;
};
type Outcome = "used" | "wrong" | "none" | "missing";

const DISABLE = `select auth.disable_factor($2, $3, $4, $5, $6, ${SENDER}) as outcome`;
const RENEW = `select auth.renew_backup_codes($2, $3, $4, $5, $6, $7, ${SENDER}) as outcome`;

export function makeFactors({ asOwner, passwords, attempts, issuer }: Options): Factors {
  /** All by one salt: one hash of a code that is shown then finds it among them. */
  const hashAll = async (codes: readonly string[]): Promise<string[]> => {
    const [first, ...others] = codes;
    const hash = await passwords.hash(first!);
    return [hash, ...(await Promise.all(others.map((code) => passwords.hashLike(hash, code))))];
  };

  const pendingSecret = async (userId: string): Promise<string> => {
    const { rows } = await asOwner((client) =>
      client.query<{ secret: string }>("select secret from auth.mfa_factors where user_id = $1 and state = 'pending'", [
        userId,
      ]),
    );
    if (!rows[0]) throw notPending();
    return rows[0].secret;
  };

  /** Only who shows a code may go on; it is spent by what follows. */
  const prove = async (userId: string, code: string, sender: Sender): Promise<{ attempt: Attempt; proof: Proof }> => {
    const attempt = await attempts.beginFor(userId, sender);
    if (attempt.factorSecret === null) {
      await attempts.giveBack(attempt);
      throw notEnabled();
    }
    const proof = await attempts.readCode(attempt, code);
    if (proof) return { attempt, proof };
    await attempts.fail(attempt, "code");
    throw wrongCode();
  };

  const spend = async (statement: string, attempt: Attempt, proof: Proof, ...more: unknown[]): Promise<void> => {
    const { sender, countedName, userId, factorSecret } = attempt;
    const { step, backupCodeHash } = proof;
    const values = [senderValue(sender), countedName, userId, factorSecret, step, backupCodeHash, ...more];
    const { rows } = await inTransaction(asOwner, (client) => client.query<{ outcome: Outcome }>(statement, values));
    const { outcome } = rows[0]!;
    if (outcome !== "used") throw outcome === "wrong" ? wrongCode() : notEnabled();
  };

  return {
    async enroll(userId, sender) {
      const secret = newTotpSecret();
      const { rows } = await inTransaction(asOwner, (client) =>
        client.query<{ username: string }>(`select auth.enroll_factor($2, $3, ${SENDER}) as username`, [
          senderValue(sender),
          userId,
          secret,
        ]),
      );
      const uri = totpUri(secret, issuer, rows[0]!.username);
      return { secret, uri, qrCode: await toDataURL(uri) };
    },

    async enable(userId, code, sender) {
      const secret = await pendingSecret(userId);
      const digits = totpCode(code);
      const step = digits === null ? null : await stepOf(secret, digits);
      if (step === null) throw wrongCode();
      const backupCodes = newBackupCodes();
      const hashes = await hashAll(backupCodes);
      const isEnabled = await inTransaction(asOwner, async (client) => {
        const { rows } = await client.query<{ enabled: boolean }>(
          `select auth.enable_factor($2, $3, $4, $5, ${SENDER}) as enabled`,
          [senderValue(sender), userId, secret, step, hashes],
        );
        return rows[0]!.enabled;
      });
      if (!isEnabled) throw notPending();
      return { backupCodes };
    },

    async disable(userId, code, sender) {
      const { attempt, proof } = await prove(userId, code, sender);
      await spend(DISABLE, attempt, proof);
    },

    async renewBackupCodes(userId, code, sender) {
      const { attempt, proof } = await prove(userId, code, sender);
      const backupCodes = newBackupCodes();
      const hashes = await attempts.orGiveBack(attempt, () => hashAll(backupCodes));
      await spend(RENEW, attempt, proof, hashes);
      return { backupCodes };
    },
  };
}

function notPending(): ApiError {
  return new ApiError(400, "VALIDATION_ERROR", "There is no enrolment to verify.", {
    hint: "Enable MFA first: that gives the secret for the authenticator app.",
  });
}

function notEnabled(): ApiError {
  return new ApiError(400, "VALIDATION_ERROR", "No authenticator app is enabled for this account.");
}

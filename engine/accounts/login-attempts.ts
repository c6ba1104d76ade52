import { setTimeout as sleep } from "node:timers/promises";
import { type AsOwner, inOwnerTransaction } from "../database/owner-pool.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "../identity/client-info.ts";
import { accountRequired, tooManyAttempts } from "./auth-errors.ts";
import { matchTimeStep, normalizeBackupCode, normalizeTotpCode } from "./factor-codes.ts";
import type { Passwords } from "./passwords.ts";

/** A counted login attempt, with the account's credentials; they are null for an unknown user name. */
export type LoginAttempt = {
  /** The user name that failed attempts are counted by. */
  readonly countedName: string;
  readonly userId: string | null;
  readonly passwordHash: string | null;
  readonly factorSecret: string | null;
  readonly backupCodeHash: string | null;
  readonly clientInfo: ClientInfo;
};

/** How the second factor was proved; both null if it was not. */
export type FactorProof = { readonly step: number | null; readonly backupCodeHash: string | null };

export type LoginAttempts = {
  /** Starts an attempt, which counts as a failure until its outcome is recorded. */
  begin(name: string, clientInfo: ClientInfo): Promise<LoginAttempt>;
  /** Starts an attempt of a user who is signed in. */
  beginFor(userId: string, clientInfo: ClientInfo): Promise<LoginAttempt>;
  hasPassword(attempt: LoginAttempt, password: string): Promise<boolean>;
  /** Null if the code is wrong. Postgres checks later whether it was used before. */
  verifyCode(attempt: LoginAttempt, code: string): Promise<FactorProof | null>;
  fail(attempt: LoginAttempt, reason: "password" | "code"): Promise<void>;
  /** The attempt does not count. */
  withdraw(attempt: LoginAttempt): Promise<void>;
  /** Runs the work; if it throws, the attempt does not count. */
  withdrawOnError<T>(attempt: LoginAttempt, work: () => Promise<T>): Promise<T>;
};

type LoginAttemptRow = {
  wait: number;
  counted_name: string;
  user_id: string | null;
  password_hash: string | null;
  factor_secret: string | null;
  backup_code_hash: string | null;
};

/** The wait, in seconds, that Postgres returns while undecided attempts fill the counter; these may still succeed. */
const RETRY_SOON = 1;
/** A client with Basic authentication starts many attempts at once, so wait instead of refusing them. */
const RETRY_DELAYS_MS = [50, 100, 200, 400, 800];

export function makeLoginAttempts(asOwner: AsOwner, passwords: Passwords): LoginAttempts {
  const beginLogin = async (name: string, clientInfo: ClientInfo): Promise<LoginAttemptRow> => {
    const { rows } = await inOwnerTransaction(asOwner, (client) =>
      client.query<LoginAttemptRow>(`select * from auth.begin_login($2, ${CLIENT_INFO_SQL})`, [
        clientInfoParameter(clientInfo),
        name,
      ]),
    );
    return rows[0]!;
  };

  const beginLoginWhenFree = async (name: string, clientInfo: ClientInfo): Promise<LoginAttemptRow> => {
    for (const delay of RETRY_DELAYS_MS) {
      const row = await beginLogin(name, clientInfo);
      if (row.wait !== RETRY_SOON) return row;
      await sleep(delay);
    }
    return beginLogin(name, clientInfo);
  };

  const begin: LoginAttempts["begin"] = async (name, clientInfo) => {
    const row = await beginLoginWhenFree(name, clientInfo);
    if (row.wait > 0) throw tooManyAttempts(row.wait);
    return {
      countedName: row.counted_name,
      userId: row.user_id,
      passwordHash: row.password_hash,
      factorSecret: row.factor_secret,
      backupCodeHash: row.backup_code_hash,
      clientInfo,
    };
  };

  const withdraw: LoginAttempts["withdraw"] = async ({ countedName, clientInfo }) => {
    await inOwnerTransaction(asOwner, (client) =>
      client.query(`select auth.end_attempt($2, (${CLIENT_INFO_SQL}).address, 'undecided')`, [
        clientInfoParameter(clientInfo),
        countedName,
      ]),
    );
  };

  const withdrawOnError: LoginAttempts["withdrawOnError"] = async (attempt, work) => {
    try {
      return await work();
    } catch (error) {
      // An attempt that cannot be withdrawn counts as a failure.
      await withdraw(attempt).catch(() => {});
      throw error;
    }
  };

  return {
    begin,
    withdraw,
    withdrawOnError,
    async beginFor(userId, clientInfo) {
      const { rows } = await asOwner((client) =>
        client.query<{ username: string }>("select username from auth.credentials where user_id = $1", [userId]),
      );
      if (!rows[0]) throw accountRequired();
      return begin(rows[0].username, clientInfo);
    },
    hasPassword(attempt, password) {
      return withdrawOnError(attempt, () => passwords.matches(attempt.passwordHash, password));
    },
    async verifyCode(attempt, code) {
      const { factorSecret, backupCodeHash } = attempt;
      const digits = normalizeTotpCode(code);
      if (digits !== null) {
        const step = factorSecret === null ? null : await matchTimeStep(factorSecret, digits);
        return step === null ? null : { step, backupCodeHash: null };
      }
      const normalized = normalizeBackupCode(code);
      if (normalized === null || backupCodeHash === null) return null;
      const hash = await withdrawOnError(attempt, () => passwords.hashLike(backupCodeHash, normalized));
      return { step: null, backupCodeHash: hash };
    },
    async fail({ countedName, userId, clientInfo }, reason) {
      await inOwnerTransaction(asOwner, (client) =>
        client.query(`select auth.fail_login($2, $3, $4, ${CLIENT_INFO_SQL})`, [
          clientInfoParameter(clientInfo),
          countedName,
          userId,
          reason,
        ]),
      );
    },
  };
}

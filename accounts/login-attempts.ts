import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { accountRequired, tooManyAttempts } from "./auth-errors.ts";
import { matchTimeStep, normalizeBackupCode, normalizeTotpCode } from "./factor-codes.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "./identity/client-info.ts";
import { type IsKnownNetwork, makeIsKnownNetwork } from "./known-networks.ts";
import type { Passwords } from "./passwords.ts";
import { type LimitSignInWork, makeSignInLimiter, type SignInRequester } from "./sign-in-limiter.ts";

/** A counted login attempt, with the account's credentials; they are null for an unknown user name. */
export type LoginAttempt = {
  /** The user name under which failed attempts are counted. */
  readonly countedName: string;
  readonly userId: string | null;
  readonly passwordHash: string | null;
  /** True if the account requires a second factor of any kind. */
  readonly hasFactor: boolean;
  /** The secrets of the authenticator apps. */
  readonly factorSecrets: readonly string[];
  readonly backupCodeHash: string | null;
  readonly clientInfo: ClientInfo;
  /** See `SignInRequester`. */
  readonly isKnown: boolean;
};

export type PasswordCheck = {
  isPasswordCorrect(attempt: LoginAttempt): boolean | Promise<boolean>;
  /** True if the client has proved to be this user before. */
  readonly hasProof: boolean;
};

/** The proof of the second factor: a code of the app with this secret, or a backup code. All members are null without a proof. */
export type FactorProof = {
  readonly factorSecret: string | null;
  readonly step: number | null;
  readonly backupCodeHash: string | null;
};

export const NO_PROOF: FactorProof = { factorSecret: null, step: null, backupCodeHash: null };

export function requesterOf({ countedName, clientInfo, isKnown }: LoginAttempt): SignInRequester {
  return { address: clientInfo.address, account: countedName, isKnown };
}

type LoginAttemptRow = {
  wait: number;
  counted_name: string;
  user_id: string | null;
  password_hash: string | null;
  has_factor: boolean;
  factor_secrets: string[];
  backup_code_hash: string | null;
};

/** The wait, in seconds, that Postgres returns while undecided attempts fill the counter; these may still succeed. */
const RETRY_SOON = 1;
/** A client with Basic authentication starts many attempts at once, so they wait instead of being refused. */
const RETRY_DELAYS_MS = [50, 100, 200, 400, 800];

/** Two of the owner's four connections: attempts that lock the same counters wait for each other. */
const MAX_STATEMENTS = 2;
/** A queue of more than a second of work. */
const MAX_WAITING_STATEMENTS = 400;

/** Attempts are counted in Postgres: each one counts as a failure until its outcome is recorded. */
export class LoginAttempts {
  readonly #asOwner: AsOwner;
  readonly #passwords: Passwords;
  readonly #limited: LimitSignInWork = makeSignInLimiter(MAX_STATEMENTS, MAX_WAITING_STATEMENTS);
  readonly #inTurn: LimitSignInWork;
  readonly #isKnownNetwork: IsKnownNetwork;

  constructor(asOwner: AsOwner, passwords: Passwords) {
    this.#asOwner = asOwner;
    this.#passwords = passwords;
    this.#inTurn = passwords.makeLoginLimiter();
    this.#isKnownNetwork = makeIsKnownNetwork(asOwner);
  }

  /**
   * Counts an attempt and checks the submitted credentials when it is the client's turn. Nothing is written or hashed
   * before, so that refusing unknown clients is cheap. A wrong password is recorded.
   */
  async begin(
    name: string,
    clientInfo: ClientInfo,
    { isPasswordCorrect, hasProof }: PasswordCheck,
  ): Promise<LoginAttempt | null> {
    const isKnown = hasProof || (await this.#isKnownNetwork(name, clientInfo.address));
    return this.#attemptWhenFree(name, clientInfo, isKnown, async (attempt) => {
      if (await isPasswordCorrect(attempt)) return attempt;
      await this.fail(attempt, "password");
      return null;
    });
  }

  /** Starts an attempt of a user who is signed in. */
  async beginFor(userId: string, clientInfo: ClientInfo): Promise<LoginAttempt> {
    const { rows } = await this.#asOwner((client) =>
      client.query<{ username: string }>("select username from auth.users where user_id = $1", [userId]),
    );
    if (!rows[0]) throw accountRequired();
    return this.#attemptWhenFree(rows[0].username, clientInfo, true, async (attempt) => attempt);
  }

  hasPassword(attempt: LoginAttempt, password: string): Promise<boolean> {
    return this.withdrawOnError(attempt, () =>
      this.#passwords.matches(attempt.passwordHash, password, requesterOf(attempt)),
    );
  }

  /** Returns null if the code is wrong. Postgres checks later that it was not used before. */
  async verifyCode(attempt: LoginAttempt, code: string): Promise<FactorProof | null> {
    const { factorSecrets, backupCodeHash } = attempt;
    const digits = normalizeTotpCode(code);
    if (digits !== null) return verifyTotpCode(factorSecrets, digits);
    const normalized = normalizeBackupCode(code);
    if (normalized === null || backupCodeHash === null) return null;
    const hash = await this.withdrawOnError(attempt, () =>
      this.#passwords.hashLike(backupCodeHash, normalized, requesterOf(attempt)),
    );
    return { factorSecret: null, step: null, backupCodeHash: hash };
  }

  async fail(attempt: LoginAttempt, reason: "password" | "code"): Promise<void> {
    const { countedName, userId, clientInfo } = attempt;
    await this.inTransaction(requesterOf(attempt), (client) =>
      client.query(`select auth.fail_login($2, $3, $4, ${CLIENT_INFO_SQL})`, [
        clientInfoParameter(clientInfo),
        countedName,
        userId,
        reason,
      ]),
    );
  }

  /**
   * Runs transactions in turn by address and account: those of the same one wait for the locks of their counters, and would
   * occupy all connections.
   */
  inTransaction<T>(requester: SignInRequester, work: (client: pg.ClientBase) => Promise<T>): Promise<T> {
    return this.#limited(requester, () => inOwnerTransaction(this.#asOwner, work));
  }

  /** Withdraws the attempt, so that it does not count. */
  async withdraw({ countedName, clientInfo }: LoginAttempt): Promise<void> {
    await inOwnerTransaction(this.#asOwner, (client) =>
      client.query(`select auth.end_attempt($2, (${CLIENT_INFO_SQL}).address, 'undecided')`, [
        clientInfoParameter(clientInfo),
        countedName,
      ]),
    );
  }

  /** Runs the work; if it throws, the attempt does not count. */
  async withdrawOnError<T>(attempt: LoginAttempt, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      // An attempt that cannot be withdrawn counts as a failure.
      await this.withdraw(attempt).catch(() => {});
      throw error;
    }
  }

  /** Waits between the turns, not during one. */
  async #attemptWhenFree<T>(
    name: string,
    clientInfo: ClientInfo,
    isKnown: boolean,
    work: (attempt: LoginAttempt) => Promise<T>,
  ): Promise<T> {
    const requester = { address: clientInfo.address, account: name, isKnown };
    const takeTurn = (isLast: boolean) =>
      this.#inTurn(requester, async () => {
        const row = await this.#beginLogin(name, clientInfo, requester);
        if (row.wait === RETRY_SOON && !isLast) return null;
        if (row.wait > 0) throw tooManyAttempts(row.wait);
        return { value: await work(toAttempt(row, clientInfo, isKnown)) };
      });
    for (const delay of RETRY_DELAYS_MS) {
      const done = await takeTurn(false);
      if (done) return done.value;
      await sleep(delay);
    }
    return (await takeTurn(true))!.value;
  }

  async #beginLogin(name: string, clientInfo: ClientInfo, requester: SignInRequester): Promise<LoginAttemptRow> {
    const { rows } = await this.inTransaction(requester, (client) =>
      client.query<LoginAttemptRow>(`select * from auth.begin_login($2, ${CLIENT_INFO_SQL})`, [
        clientInfoParameter(clientInfo),
        name,
      ]),
    );
    return rows[0]!;
  }
}

function toAttempt(row: LoginAttemptRow, clientInfo: ClientInfo, isKnown: boolean): LoginAttempt {
  return {
    countedName: row.counted_name,
    userId: row.user_id,
    passwordHash: row.password_hash,
    hasFactor: row.has_factor,
    factorSecrets: row.factor_secrets,
    backupCodeHash: row.backup_code_hash,
    clientInfo,
    isKnown,
  };
}

async function verifyTotpCode(factorSecrets: readonly string[], digits: string): Promise<FactorProof | null> {
  for (const factorSecret of factorSecrets) {
    const step = await matchTimeStep(factorSecret, digits);
    if (step !== null) return { factorSecret, step, backupCodeHash: null };
  }
  return null;
}

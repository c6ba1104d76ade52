import { setTimeout as sleep } from "node:timers/promises";
import { type AsOwner, inTransaction } from "../database/as-owner.ts";
import { backupCode, totpCode } from "./codes.ts";
import type { Passwords } from "./passwords.ts";
import { noAccount, tooManyAttempts } from "./refusals.ts";
import { SENDER, type Sender, senderValue } from "./sender.ts";
import { stepOf } from "./totp.ts";

/** What is known of somebody who tries to prove who they are; nothing of a name that nobody has. */
export type Attempt = {
  /** The name that the throttle counts by. */
  readonly countedName: string;
  readonly userId: string | null;
  readonly passwordHash: string | null;
  readonly factorSecret: string | null;
  readonly backupCodeHash: string | null;
  readonly sender: Sender;
};

/** By what a factor was shown; both null: not at all. */
export type Proof = { readonly step: number | null; readonly backupCodeHash: string | null };

export type Attempts = {
  /** Counts as a failure from now on, until it is told otherwise. */
  begin(name: string, sender: Sender): Promise<Attempt>;
  /** By who is signed in already. */
  beginFor(userId: string, sender: Sender): Promise<Attempt>;
  hasPassword(attempt: Attempt, password: string): Promise<boolean>;
  /** Null: this cannot be a code of theirs. Whether it was used before, only Postgres can say. */
  readCode(attempt: Attempt, code: string): Promise<Proof | null>;
  fail(attempt: Attempt, reason: "password" | "code"): Promise<void>;
  /** It was none after all. */
  giveBack(attempt: Attempt): Promise<void>;
  /** Does what may not come about though nobody was wrong, in which case the attempt was none. */
  orGiveBack<T>(attempt: Attempt, work: () => Promise<T>): Promise<T>;
};

type Row = {
  wait: number;
  counted_name: string;
  user_id: string | null;
  password_hash: string | null;
  factor_secret: string | null;
  backup_code_hash: string | null;
};

/** In seconds: what Postgres says where attempts that are still being made fill a counter. They may yet succeed. */
const SOON = 1;
/** Whoever shows a password with each request makes many at once, and is not to be refused for that. */
const PAUSES_MS = [50, 100, 200, 400, 800];

export function makeAttempts(asOwner: AsOwner, passwords: Passwords): Attempts {
  const ask = async (name: string, sender: Sender): Promise<Row> => {
    const { rows } = await inTransaction(asOwner, (client) =>
      client.query<Row>(`select * from auth.begin_login($2, ${SENDER})`, [senderValue(sender), name]),
    );
    return rows[0]!;
  };

  const askInTurn = async (name: string, sender: Sender): Promise<Row> => {
    for (const pause of PAUSES_MS) {
      const row = await ask(name, sender);
      if (row.wait !== SOON) return row;
      await sleep(pause);
    }
    return ask(name, sender);
  };

  const begin: Attempts["begin"] = async (name, sender) => {
    const row = await askInTurn(name, sender);
    if (row.wait > 0) throw tooManyAttempts(row.wait);
    return {
      countedName: row.counted_name,
      userId: row.user_id,
      passwordHash: row.password_hash,
      factorSecret: row.factor_secret,
      backupCodeHash: row.backup_code_hash,
      sender,
    };
  };

  const giveBack: Attempts["giveBack"] = async ({ countedName, sender }) => {
    await inTransaction(asOwner, (client) =>
      client.query(`select auth.end_attempt($2, (${SENDER}).address, 'undecided')`, [senderValue(sender), countedName]),
    );
  };

  const orGiveBack: Attempts["orGiveBack"] = async (attempt, work) => {
    try {
      return await work();
    } catch (error) {
      // One that cannot be given back is a failure.
      await giveBack(attempt).catch(() => {});
      throw error;
    }
  };

  return {
    begin,
    giveBack,
    orGiveBack,
    async beginFor(userId, sender) {
      const { rows } = await asOwner((client) =>
        client.query<{ username: string }>("select username from auth.credentials where user_id = $1", [userId]),
      );
      if (!rows[0]) throw noAccount();
      return begin(rows[0].username, sender);
    },
    hasPassword(attempt, password) {
      return orGiveBack(attempt, () => passwords.matches(attempt.passwordHash, password));
    },
    async readCode(attempt, code) {
      const { factorSecret, backupCodeHash } = attempt;
      const digits = totpCode(code);
      if (digits !== null) {
        const step = factorSecret === null ? null : await stepOf(factorSecret, digits);
        return step === null ? null : { step, backupCodeHash: null };
      }
      const letters = backupCode(code);
      if (letters === null || backupCodeHash === null) return null;
      const hash = await orGiveBack(attempt, () => passwords.hashLike(backupCodeHash, letters));
      return { step: null, backupCodeHash: hash };
    },
    async fail({ countedName, userId, sender }, reason) {
      await inTransaction(asOwner, (client) =>
        client.query(`select auth.fail_login($2, $3, $4, ${SENDER})`, [
          senderValue(sender),
          countedName,
          userId,
          reason,
        ]),
      );
    },
  };
}

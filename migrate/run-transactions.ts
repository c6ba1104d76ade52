import type pg from "pg";
import { MigrationError, type MigrationSource } from "./migration-error.ts";
import { toUtf16Offset } from "./split-statements.ts";
import type { ScriptTransaction } from "./split-transactions.ts";

/** A transaction of a script has failed, and was rolled back; those before it are committed. */
export class TransactionError extends Error {
  override readonly cause: pg.DatabaseError;
  /** The offset of the error in the script. */
  readonly offset: number;
  /** The number of committed transactions. */
  readonly committed: number;

  constructor(cause: pg.DatabaseError, offset: number, committed: number) {
    super(cause.message);
    this.cause = cause;
    this.offset = offset;
    this.committed = committed;
  }
}

type RunOptions = {
  /** The number of transactions that are already committed. */
  readonly committed?: number;
  /** Runs in each transaction before its statements. */
  readonly begin?: (index: number) => Promise<void>;
  /** Runs in each transaction after its statements. */
  readonly finish?: (index: number) => Promise<void>;
};

/** The settings that a session keeps when its transaction ends. */
const SESSION_SETTING =
  /^(?:set\s+(?!local\b|constraints\b|transaction\b)|reset\b|select\s+(?:pg_catalog\s*\.\s*)?set_config\s*\([^()]*,\s*false\s*\)$)/i;

/** Runs each transaction of a script. Throws a TransactionError if one fails. */
export async function runTransactions(
  client: pg.ClientBase,
  transactions: readonly ScriptTransaction[],
  { committed = 0, begin = async () => {}, finish = async () => {} }: RunOptions = {},
): Promise<void> {
  for (const { statements, end } of transactions.slice(0, committed)) {
    if (end === "rollback") continue;
    for (const { sql } of statements) if (SESSION_SETTING.test(sql)) await client.query(sql);
  }
  for (const [index, { opening, statements, end }] of transactions.entries()) {
    if (index < committed) continue;
    let offset = statements[0]!.start;
    try {
      await client.query(opening);
      await begin(index);
      for (const { start, sql } of statements) {
        offset = start;
        await client.query(sql);
      }
      if (end === "rollback") {
        await client.query("rollback");
        await client.query("begin");
      }
      await finish(index);
      offset = statements[0]!.start;
      await client.query("commit");
    } catch (thrown) {
      await client.query("rollback");
      const error = thrown as pg.DatabaseError;
      const statement = statements.find(({ start }) => start === offset)!.sql;
      const position = Number(error.position ?? 0);
      throw new TransactionError(error, offset + (position > 0 ? toUtf16Offset(statement, position) : 0), index);
    }
  }
}

/** Adds the place and the committed transactions to an error of `runTransactions`. */
export function explainTransactionError(
  thrown: unknown,
  source: MigrationSource,
  transactions: readonly ScriptTransaction[],
): unknown {
  if (!(thrown instanceof TransactionError)) return thrown;
  const { cause, offset, committed } = thrown;
  return new MigrationError(cause, source, offset, describeCommitted(source, transactions, committed));
}

/** Describes the committed part of a failed script; null if there is none. */
export function describeCommitted(
  { sql, origins }: { readonly sql: string; readonly origins: readonly { readonly line: number }[] },
  transactions: readonly ScriptTransaction[],
  committed: number,
): string | null {
  if (committed === 0) return null;
  const index = sql.slice(0, transactions[committed - 1]!.endOffset).split("\n").length - 1;
  return `What stands up to line ${(origins[index] ?? origins.at(-1)!).line} is committed, and stays.`;
}

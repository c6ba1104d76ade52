import { type SqlStatement, splitStatements } from "./split-statements.ts";

/** The statements up to a `commit` or `rollback`, or to the end of the script. */
export type ScriptTransaction = {
  /** `begin`, with its modes if the script has some. */
  readonly opening: string;
  /** The statements, with offsets in the script. */
  readonly statements: readonly SqlStatement[];
  readonly end: "commit" | "rollback";
  /** The offset in the script after the end of the transaction. */
  readonly endOffset: number;
};

const BEGINS = /^(?:begin|start\s+transaction)\b/i;
const ENDS = /^(?:(commit|end)|rollback|abort)(?:\s+(?:work|transaction))?(?:\s+and\s+(?:no\s+)?chain)?$/i;

/** True if the statement begins or ends a transaction; savepoints do not. */
export function isTransactionBoundary({ sql }: Pick<SqlStatement, "sql">): boolean {
  return BEGINS.test(sql) || ENDS.test(sql);
}

/** True if the script has a statement that ends a transaction. */
export function endsTransactions(script: string): boolean {
  return splitStatements(script).some(({ sql }) => ENDS.test(sql));
}

/** True if the script is a single transaction: its statements do not end it, except by one commit. */
export function isOneTransaction(script: string): boolean {
  const transactions = splitTransactions(script);
  return transactions.length <= 1 && transactions.every(({ end }) => end === "commit");
}

/**
 * Splits a script into the transactions that Postgres makes of it when it receives it as a whole: statements before a `begin` belong to the
 * same transaction as those after it. Transactions without statements are left out.
 */
export function splitTransactions(script: string): ScriptTransaction[] {
  const transactions: ScriptTransaction[] = [];
  let statements: SqlStatement[] = [];
  let opening = "begin";
  const finish = (end: ScriptTransaction["end"], endOffset: number) => {
    if (statements.length > 0) transactions.push({ opening, statements, end, endOffset });
    statements = [];
    opening = "begin";
  };
  for (const statement of splitStatements(script)) {
    const { start, sql } = statement;
    const ending = ENDS.exec(sql);
    if (ending) finish(ending[1] ? "commit" : "rollback", start + sql.length);
    else if (!BEGINS.test(sql)) statements.push(statement);
    else if (statements.length === 0) opening = sql;
  }
  finish("commit", script.length);
  return transactions;
}

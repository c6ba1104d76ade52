import pg from "pg";
import { hintOf } from "#postgres/client";
import { runsWithoutTransaction, type SqlStatement, splitStatements, toUtf16Offset } from "./split-statements.ts";

/** A statement that would end the transaction, or a part of it. */
const TRANSACTION_CONTROL =
  /^(begin|start\s+transaction|commit|end|rollback|abort|savepoint|release|prepare\s+transaction)\b/i;
/** SQLSTATE active_sql_transaction. */
const REFUSES_TRANSACTION = "25001";

/** The limit is short, since a waiting statement blocks all sessions behind it. */
const LOCK_TIMEOUT = "5s";
/** The limit is short, since a trial holds its locks for no lasting result. */
const TRIAL_STATEMENT_TIMEOUT = "30s";

/** A place in a script, counted from 1. */
type ScriptPlace = { readonly line: number; readonly column: number };

/** An error in a script; the cause is Postgres's error. */
export class SqlScriptError extends Error {
  readonly place: ScriptPlace;

  constructor(cause: Error, { line, column }: ScriptPlace) {
    super(cause.message, { cause });
    this.place = { line, column };
  }
}

function errorAt(offset: number, script: string, cause: Error | string): SqlScriptError {
  const before = script.slice(0, offset).split("\n");
  const place = { line: before.length, column: before.at(-1)!.length + 1 };
  return new SqlScriptError(typeof cause === "string" ? new Error(cause) : cause, place);
}

/** The statements of the script. Throws if there is none. */
export function requireStatement(script: string): SqlStatement[] {
  const statements = splitStatements(script);
  if (statements.length === 0) throw errorAt(0, script, "The SQL has no statement.");
  return statements;
}

/** Runs the script in one transaction. A script that begins with `--! no-transaction` has one statement, which runs without a transaction. */
export async function runSql(client: pg.ClientBase, script: string): Promise<void> {
  await client.query("select pg_catalog.set_config('lock_timeout', $1, false)", [LOCK_TIMEOUT]);
  if (runsWithoutTransaction(script)) return runSingleStatement(client, script);
  await client.query("begin");
  try {
    await runStatements(script, ({ sql }) => runWithoutRows(client, sql));
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
  try {
    await client.query("commit");
  } catch (error) {
    // A deferred constraint has failed.
    throw errorAt(0, script, error as Error);
  }
}

/** Runs the work after the statements, in the same transaction, which is rolled back. */
export async function inTrialTransaction<T>(client: pg.ClientBase, work: () => Promise<T>): Promise<T> {
  await client.query("begin isolation level repeatable read");
  try {
    await client.query(
      "select pg_catalog.set_config('lock_timeout', $1, true), pg_catalog.set_config('statement_timeout', $2, true)",
      [LOCK_TIMEOUT, TRIAL_STATEMENT_TIMEOUT],
    );
    return await work();
  } finally {
    await client.query("rollback");
  }
}

type StatementRunner = (statement: SqlStatement) => Promise<void>;

/** Runs the statements in the open transaction, which none of them may end. */
export async function runStatements(script: string, run: StatementRunner): Promise<void> {
  const statements = requireStatement(script);
  for (const { start, sql } of statements) {
    if (!TRANSACTION_CONTROL.test(sql)) continue;
    throw errorAt(start, script, "The script is one transaction, which its statements cannot begin or end.");
  }
  for (const statement of statements) await runStatement(script, statement, run);
}

async function runSingleStatement(client: pg.ClientBase, script: string): Promise<void> {
  const [statement, second] = requireStatement(script);
  if (second) throw errorAt(second.start, script, 'A script with "--! no-transaction" has one statement.');
  await runStatement(script, statement!, ({ sql }) => runWithoutRows(client, sql));
}

async function runStatement(script: string, statement: SqlStatement, run: StatementRunner): Promise<void> {
  const { start, sql } = statement;
  try {
    await run(statement);
  } catch (thrown) {
    const error = thrown as pg.DatabaseError;
    const position = Number(error.position ?? 0);
    if (error.code === REFUSES_TRANSACTION) {
      error.hint = 'Run this statement alone, and begin with the line "--! no-transaction".';
    }
    error.hint = hintOf(error);
    throw errorAt(start + (position > 0 ? toUtf16Offset(sql, position) : 0), script, error);
  }
}

/** Drops rows as they arrive: a script does not need them, and they may not fit in memory. */
export function runWithoutRows(client: pg.ClientBase, sql: string): Promise<void> {
  // The extended protocol makes Postgres refuse a text with several statements.
  const query: pg.QueryConfig & { readonly queryMode: string } = { text: sql, queryMode: "extended" };
  return new Promise((resolve, reject) => {
    const running = client.query(new pg.Query(query));
    running.on("row", () => {});
    running.on("end", () => resolve());
    running.on("error", reject);
  });
}

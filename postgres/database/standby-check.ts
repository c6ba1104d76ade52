import pg from "pg";
import { IS_IN_RECOVERY } from "../client/server-finder.ts";
import { readRow } from "../client/server-messages.ts";
import { type BatchStep, beginningStep, endingStep, makeStatementStep } from "./batch-steps.ts";
import type { PostgresConnection } from "./connection.ts";
import { StatementShape } from "./statement-shape.ts";

/** SQLSTATE read_only_sql_transaction. */
const READ_ONLY_TRANSACTION = "25006";
/** A standby has other codes for serializable transactions and functions of the WAL, so the message is checked. */
const RECOVERY_MESSAGE = /during recovery|hot standby|recovery is in progress/;

const QUESTION = { text: IS_IN_RECOVERY, values: [] };
// Routers send a transaction to the primary, or at least to one server.
const STEPS = [
  beginningStep(),
  makeStatementStep(new StatementShape(IS_IN_RECOVERY), QUESTION, { sync: false }),
  endingStep("commit"),
];
const TIMEOUT_MS = 2_000;

/** True if a standby may have refused the statement. The role, the database or the transaction may also be read-only. */
export function suspectsStandby(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return false;
  return error.code === READ_ONLY_TRANSACTION || RECOVERY_MESSAGE.test(error.message);
}

/** True if the request's own transaction is read-only, regardless of the server. */
export function isDeclaredReadOnly(steps: readonly BatchStep[]): boolean {
  return steps.some(({ isContext, shape }) => isContext && shape.text.includes("'transaction_read_only'"));
}

/** Resolves to true if the session is on a standby, or lost; then a refused statement has changed nothing. */
export function isOnStandby(connection: PostgresConnection): Promise<boolean> {
  return new Promise((resolve) => {
    let answer: string | null | undefined;
    const collector = {
      row: (buffer: Buffer, start: number, end: number) => {
        [answer] = readRow(buffer, start, end);
      },
      complete: () => {},
    };
    connection.send({
      steps: STEPS,
      main: 1,
      mainCount: 1,
      collector,
      wantsFields: false,
      fresh: false,
      keepsTransaction: false,
      responseTimeoutMs: TIMEOUT_MS,
      expected: 0,
      interruptible: null,
      isAbandoned: false,
      admits: () => true,
      end: ({ kind }) => resolve(kind === "done" ? answer === "t" : connection.isClosed),
    });
  });
}

import pg from "pg";
import { IS_IN_RECOVERY } from "../client/server-finder.ts";
import { readRow } from "../client/server-messages.ts";
import { type BatchStep, beginningStep, endingStep, makeStatementStep } from "./batch-steps.ts";
import type { PostgresConnection } from "./connection.ts";
import { StatementShape } from "./statement-shape.ts";

/** SQLSTATE read_only_sql_transaction. */
const READ_ONLY_TRANSACTION = "25006";
/** For serializable transactions and functions of the WAL a standby has other codes. */
const RECOVERY_MESSAGE = /during recovery|hot standby|recovery is in progress/;

const QUESTION = { text: IS_IN_RECOVERY, values: [] };
// Routers send what is in a transaction to the primary, or at least to one server.
const STEPS = [
  beginningStep(),
  makeStatementStep(new StatementShape(IS_IN_RECOVERY), QUESTION, { sync: false }),
  endingStep("commit"),
];
const TIMEOUT_MS = 2_000;

/** Whether a standby may have refused the statement. It may also be the role, the database or the transaction that is read-only. */
export function suspectsStandby(error: unknown): boolean {
  if (!(error instanceof pg.DatabaseError)) return false;
  return error.code === READ_ONLY_TRANSACTION || RECOVERY_MESSAGE.test(error.message);
}

/** Whether the request's own transaction is read-only, whatever the server is. */
export function isDeclaredReadOnly(steps: readonly BatchStep[]): boolean {
  return steps.some(({ isContext, shape }) => isContext && shape.text.includes("'transaction_read_only'"));
}

/** Whether the session is on a standby, or lost; then a refused statement has changed nothing. */
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

import type { Abort } from "../../engine/abort.ts";
import type { Ask } from "../../engine/database/as-login.ts";
import type { Database } from "../../engine/database/database.ts";
import type { Isolation } from "../../engine/database/exchange.ts";
import type { Context, Result, Row, Statement } from "../../engine/database/statement.ts";
import type { Query } from "../../engine/database/transaction.ts";
import type { Plan } from "./plan/plan.ts";
import type { Prepared } from "./prepare.ts";
import { type Answer, toAnswer } from "./query/answer.ts";
import { refusalOf } from "./query/guard.ts";
import { runLong, type Told } from "./run-long.ts";

export type RunOptions = {
  /** Undone when it is over, whatever it was. */
  readonly rollback: boolean;
  /** Null: as the database has it. Another one needs a transaction that is begun by itself. */
  readonly isolation: Isolation | null;
  /** Called in the same transaction first. */
  readonly before: Statement | undefined;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: Abort;
};

/** One round trip. Refuses with Postgres's own error, or with what a guard of the plan says. */
export function runPrepared(
  { plan, statement, long }: Prepared,
  context: Context,
  database: Database,
  options: RunOptions,
): Promise<Told> {
  // Rows come one by one in a transaction of the usual kind alone.
  const isUsual = !options.rollback && options.isolation === null;
  if (long && isUsual) return runLong({ plan, long }, context, database, options).catch(refuse);
  return ask(plan.readOnly, statement, context, database, options).then(({ rows }) => answerOf(plan, rows), refuse);
}

/** The same in a transaction that somebody else has begun. */
export function runWithin(query: Ask, { plan, statement }: Prepared): Promise<Answer<string | Buffer>> {
  return query(statement).then(({ rows }) => answerOf(plan, rows), refuse);
}

function refuse(error: unknown): never {
  throw refusalOf(error) ?? error;
}

function answerOf(plan: Plan, rows: readonly Row<string | Buffer | null>[]): Answer<string | Buffer> {
  if (plan.format.kind === "plan") return explained(rows.map(([line]) => String(line)));
  return toAnswer(rows[0]! as readonly (string | Buffer)[], plan);
}

type Rows = Pick<Result<string | Buffer | null>, "rows">;

function ask(
  readOnly: boolean,
  statement: Statement,
  context: Context,
  database: Database,
  { rollback, isolation, before, signal }: RunOptions,
): Promise<Rows> {
  if (isolation === null) {
    return database.run(context, statement, { readOnly, rollback, before, signal, largeValues: "buffer" });
  }
  let undone: Rows | null = null;
  const work = async (query: Query) => {
    if (before) await query(before);
    const result = await query(statement);
    if (!rollback) return result;
    await query(CHECK_CONSTRAINTS);
    undone = result;
    throw new Error("undone on purpose");
  };
  return database.transaction(context, work, { readOnly, isolation }).catch((error: unknown) => {
    if (undone) return undone;
    throw error;
  });
}

/** As they would be at commit. */
const CHECK_CONSTRAINTS: Statement = { text: "set constraints all immediate", values: [] };

/** Postgres tells its plan line by line. */
function explained(lines: readonly string[]): Answer<string> {
  const body = lines.join("\n");
  return { body, page: 0, total: null, headers: null, status: null, location: null, inserted: null };
}

import type { ApiError } from "../errors.ts";
import { type Allowance, type Budget, UNLIMITED } from "./budget.ts";
import {
  type Collector,
  type Exchange,
  endingStep,
  type Isolation,
  type Outcome,
  openingSteps,
  type Step,
  statementStep,
  type Terms,
} from "./exchange.ts";
import { connectionLost, outcomeUnknown, transactionFailed } from "./faults.ts";
import type { Lane } from "./lane.ts";
import type { Link } from "./link.ts";
import type { Watch } from "./observe.ts";
import { Rows } from "./rows.ts";
import type { Shape, Shapes } from "./shape.ts";
import { callerOf } from "./shares.ts";
import type { Context, Result, Statement } from "./statement.ts";
import { readCommand } from "./wire/decode.ts";

/** A transaction that is kept waiting holds locks and keeps old rows alive; the server then ends its session. */
const IDLE_MILLISECONDS = 60_000;

/** SQLSTATE in_failed_sql_transaction. */
const FAILED_BEFORE = "25P02";

export type Query = (statement: Statement, options?: { readonly fields?: boolean }) => Promise<Result>;

export type TransactionPlan = {
  readonly lane: Lane;
  readonly isAnonymous: boolean;
  readonly shapes: Shapes;
  readonly context: Context;
  readonly terms: Terms;
  readonly isolation: Isolation | undefined;
  readonly patience: number;
  /** Until when it may wait for a connection. */
  readonly deadline: () => number;
  /** For what each query may hold. Nothing is committed yet, so what writes can be refused too. */
  readonly makeBudget: () => Budget;
  /** Finds out more about an error. */
  readonly explain: (error: unknown, shape: Shape) => Promise<unknown>;
  /** Null: nobody wants to know how it goes. */
  readonly watch?: (statement: Statement) => Watch | null;
};

export async function inTransaction<T>(plan: TransactionPlan, work: (query: Query) => Promise<T>): Promise<T> {
  const transaction = new Transaction(plan);
  try {
    const result = await work((statement, options) => transaction.query(statement, options?.fields ?? false));
    await transaction.commit();
    return result;
  } catch (error) {
    await transaction.rollBack();
    throw error;
  } finally {
    transaction.release();
  }
}

function lease({ lane, context, isAnonymous, deadline }: TransactionPlan, { shape }: Step): Promise<Link> {
  return new Promise((resolve, reject) => {
    const start = (link: Link) => {
      link.leased = true;
      resolve(link);
    };
    const { relations } = shape;
    const claimant = { caller: callerOf(context), isAnonymous, relations, kind: shape, isLong: false, isBrief: false };
    lane.submit({ ...claimant, expires: deadline(), start, refuse: reject });
  });
}

type Particulars = Partial<Pick<Exchange, "wantsFields" | "fresh" | "keepsTransaction">>;

type Reply = { readonly outcome: Outcome; readonly rows: Rows<string | null>; readonly bytes: number };

class Transaction {
  readonly #plan: TransactionPlan;
  /** None before the first statement says what it is about. */
  #link: Link | null = null;
  /** The answer to BEGIN, the settings and the first statement, which travel together. */
  #first: Promise<Reply> | null = null;
  #failure: Error | null = null;
  #isOver = false;
  #isEnded = false;

  constructor(plan: TransactionPlan) {
    this.#plan = plan;
  }

  async query(statement: Statement, wantsFields: boolean): Promise<Result> {
    const { context, shapes } = this.#plan;
    const shape = shapes.of(context.role, statement.text);
    const watch = this.#plan.watch?.(statement);
    try {
      const reply = await this.#reply(shape, statement, wantsFields);
      if (this.#link) watch?.startedOn(this.#link.pid);
      if (reply.outcome.kind !== "lost") watch?.took(reply.outcome.milliseconds);
      const result = this.#resultOf(reply);
      watch?.rows(result.rows.length, reply.bytes);
      watch?.over(null);
      return result;
    } catch (error) {
      watch?.over(error);
      throw await this.#plan.explain(error, shape);
    }
  }

  async #reply(shape: Shape, statement: Statement, wantsFields: boolean): Promise<Reply> {
    if (this.#isOver) throw new Error("The transaction is over; its queries must be awaited inside of it");
    const step = statementStep(shape, statement, { sync: true });
    if (!this.#first) {
      this.#first = this.#begin(step, wantsFields);
      return this.#first;
    }
    // Outside of a transaction it would run as the login and not as the caller.
    await this.#begun();
    return this.#ask([step], { wantsFields });
  }

  async commit(): Promise<void> {
    this.#isOver = true;
    if (!this.#first) return;
    await this.#begun();
    this.#isEnded = true;
    let command = "";
    const collector = {
      row: () => {},
      complete: (buffer: Buffer, start: number, end: number) => {
        command = readCommand(buffer, start, end);
      },
    };
    const outcome = await this.#exchange([endingStep("commit")], collector, { keepsTransaction: false });
    if (outcome.kind === "lost" && outcome.sent && !this.#plan.terms.readOnly) throw outcomeUnknown(outcome.cause);
    // Postgres answers COMMIT with ROLLBACK when a statement had failed.
    if (outcome.kind !== "done" || command !== "COMMIT") throw this.#failure ?? transactionFailed();
  }

  async rollBack(): Promise<void> {
    this.#isOver = true;
    if (!this.#first || this.#isEnded) return;
    await this.#first.catch(() => {});
    // When the link is lost, it is undone as well.
    if (this.#link) await this.#ask([endingStep("rollback")], { keepsTransaction: false });
  }

  release(): void {
    if (this.#link) this.#plan.lane.release(this.#link);
    this.#link = null;
  }

  /** Nobody has seen a result yet: when the link is lost, or the statement outdated on it, this may start over. */
  async #begin(step: Step, wantsFields: boolean): Promise<Reply> {
    this.#link = await lease(this.#plan, step);
    const steps = [...this.#opening(), step];
    const reply = await this.#ask(steps, { wantsFields });
    const { outcome } = reply;
    if (outcome.kind === "lost") {
      this.release();
      this.#link = await lease(this.#plan, step);
    } else if (outcome.kind === "refused" && outcome.isStale) {
      await this.#ask([endingStep("rollback")], { keepsTransaction: false });
    } else return reply;
    this.#failure = null;
    return this.#ask(steps, { wantsFields, fresh: true });
  }

  async #begun(): Promise<void> {
    const { outcome } = await this.#first!;
    if (outcome.kind !== "done") throw this.#failure!;
  }

  #resultOf({ outcome, rows }: Reply): Result {
    if (outcome.kind !== "done") throw this.#failure!;
    return { rows: rows.rows, rowCount: rows.rowCount, fields: outcome.fields };
  }

  async #ask(steps: readonly Step[], particulars: Particulars): Promise<Reply> {
    const rows = Rows.ofStrings();
    const budget = this.#plan.makeBudget();
    const outcome = await this.#exchange(steps, rows, particulars, budget);
    const bytes = budget.giveAllBack();
    return { outcome, rows, bytes };
  }

  #exchange(
    steps: readonly Step[],
    collector: Collector,
    particulars: Particulars,
    allowance: Allowance = UNLIMITED,
  ): Promise<Outcome> {
    const { wantsFields = false, fresh = false, keepsTransaction = true } = particulars;
    const { patience } = this.#plan;
    const main = steps.length - 1;
    let excess: ApiError | null = null;
    // Nothing is cancelled: that might hit what ends the transaction.
    const admits = (bytes: number): boolean => {
      if (!excess && !allowance.take(bytes)) excess = allowance.refusal();
      return !excess;
    };
    return new Promise((resolve) => {
      const end = (ended: Outcome) => {
        const outcome: Outcome =
          excess && ended.kind === "done"
            ? { ...ended, kind: "refused", error: excess, isStale: false, isInterrupted: false }
            : ended;
        this.#note(outcome);
        resolve(outcome);
      };
      this.#link!.send({
        steps,
        main,
        mains: 1,
        collector,
        wantsFields,
        fresh,
        keepsTransaction,
        patience,
        expected: 0,
        isInterruptible: false,
        isAbandoned: false,
        admits,
        end,
      });
    });
  }

  /** Keeps the reason of a failure, and not what merely follows from it. */
  #note(outcome: Outcome): void {
    if (outcome.kind === "done") return;
    const error = outcome.kind === "lost" ? connectionLost(outcome.cause) : outcome.error;
    const follows = outcome.kind === "lost" ? !outcome.sent : (error as { code?: string }).code === FAILED_BEFORE;
    if (!follows || !this.#failure) this.#failure = error;
  }

  #opening(): Step[] {
    const { context, terms, isolation } = this.#plan;
    const guard = ["idle_in_transaction_session_timeout", String(IDLE_MILLISECONDS)] as const;
    return openingSteps({ ...context, settings: [guard, ...context.settings] }, terms, isolation);
  }
}

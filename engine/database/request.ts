import type { Abort } from "../abort.ts";
import type { ApiError } from "../errors.ts";
import type { Allowance } from "./budget.ts";
import type { Collector, Exchange, Outcome, Step } from "./exchange.ts";
import { connectionLost, isTimeout, madeButTooLarge, outcomeUnknown } from "./faults.ts";
import type { Lane, Ticket } from "./lane.ts";
import type { Link } from "./link.ts";
import type { Watch } from "./observe.ts";
import type { Pace } from "./shape.ts";
import { callerOf } from "./shares.ts";
import type { Context, Field } from "./statement.ts";

export type RestartableCollector = Collector & {
  /** Forgets what has come in so far; false when somebody has seen it already. */
  restart(): boolean;
};

export type Elsewhere = { readonly lane: Lane; readonly slow: Lane };

export type Question = {
  readonly pace: Pace;
  readonly context: Pick<Context, "role" | "callerKey">;
  readonly isAnonymous: boolean;
  readonly steps: readonly Step[];
  readonly main: number;
  /** One, unless it says more. */
  readonly mains?: number;
  readonly wantsFields: boolean;
  readonly patience: number;
  /** It cannot have changed anything, so it may run again when its answer was lost. */
  readonly readOnly: boolean;
  /** What of its answer may be held. */
  readonly allowance: Allowance;
  readonly expires: number;
  readonly signal: Abort | undefined;
  /** Where it goes on when it was interrupted. */
  readonly slow?: Lane | undefined;
  /** Of the primary, where the request goes to a replica first. */
  readonly elsewhere?: Elsewhere | undefined;
  /** For who wants to know how it goes. */
  readonly watch?: Watch | null;
};

export type Answer = {
  resolve(fields: readonly Field[] | null): void;
  reject(error: unknown): void;
};

type OutcomeOf<Kind> = Extract<Outcome, { kind: Kind }>;

/** One transaction for one caller: waits for a link of its lane, and may run again where that is safe. */
export class Request implements Ticket, Exchange {
  readonly steps: readonly Step[];
  readonly main: number;
  readonly mains: number;
  readonly wantsFields: boolean;
  readonly patience: number;
  readonly expires: number;
  readonly expected: number;
  readonly keepsTransaction = false;
  readonly isAnonymous: boolean;
  readonly collector: RestartableCollector;
  /** True on the second run. */
  fresh = false;

  #lane: Lane;
  #elsewhere: Elsewhere | undefined;
  #slow: Lane | undefined;
  readonly #pace: Pace;
  readonly #context: Question["context"];
  #caller: string | null = null;
  /** It was interrupted where it had no more time than any other. */
  #isLong = false;
  readonly #readOnly: boolean;
  readonly #answer: Answer;
  readonly #signal: Abort | undefined;
  readonly #allowance: Allowance;
  readonly #watch: Watch | null;
  /** How much of the allowance is taken. */
  #held = 0;
  #excess: ApiError | null = null;
  #link: Link | null = null;
  #lostAt: number | null = null;

  constructor(lane: Lane, question: Question, collector: RestartableCollector, answer: Answer) {
    this.steps = question.steps;
    this.main = question.main;
    this.mains = question.mains ?? 1;
    this.wantsFields = question.wantsFields;
    this.patience = question.patience;
    this.expires = question.expires;
    this.collector = collector;
    this.#lane = lane;
    this.#elsewhere = question.elsewhere;
    this.#slow = question.slow;
    this.#pace = question.pace;
    this.#context = question.context;
    this.expected = question.pace.expected;
    this.isAnonymous = question.isAnonymous;
    this.#readOnly = question.readOnly;
    this.#answer = answer;
    this.#signal = question.signal;
    this.#allowance = question.allowance;
    this.#watch = question.watch ?? null;
  }

  submit(): void {
    if (this.#signal?.aborted) this.#fail(this.#signal.reason);
    else {
      this.#signal?.addEventListener("abort", this.#onAbort);
      this.#lane.submit(this);
    }
  }

  get isBrief(): boolean {
    return this.#pace.isBrief;
  }

  get isLong(): boolean {
    return this.#isLong || this.#pace.isLongFor(this);
  }

  get kind(): object {
    return this.#pace;
  }

  get caller(): string {
    this.#caller ??= callerOf(this.#context);
    return this.#caller;
  }

  get relations(): readonly string[] {
    return this.#pace.relations;
  }

  get isInterruptible(): boolean {
    return this.#readOnly && this.#slow !== undefined;
  }

  get isAbandoned(): boolean {
    return this.#signal?.aborted ?? false;
  }

  /** The link that works on it, if one does. */
  get link(): Link | null {
    return this.#link;
  }

  start(link: Link): void {
    this.#link = link;
    this.#watch?.startedOn(link.pid);
    link.send(this);
  }

  admits(bytes: number): boolean {
    if (this.#excess) return false;
    this.#watch?.row(bytes);
    this.#held += bytes;
    if (this.#allowance.take(bytes)) return true;
    this.#excess = this.#allowance.refusal();
    this.#forget();
    // Where others share the link nothing is cancelled, nor is a change: what is left of the answer passes by.
    if (this.#readOnly) this.#link?.cancel();
    return false;
  }

  refuse(error: unknown): void {
    if (this.#mayAskElsewhere(error)) this.#askElsewhere();
    else this.#fail(error);
  }

  #fail(error: unknown): void {
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#watch?.over(error);
    this.#answer.reject(error);
  }

  end(outcome: Outcome): void {
    const link = this.#link!;
    this.#link = null;
    if (outcome.kind !== "lost") this.#watch?.took(outcome.milliseconds);
    if (this.#signal?.aborted) this.#fail(this.#signal.reason);
    else if (this.#excess) this.#onExcess(outcome, this.#excess);
    else if (outcome.kind === "done") this.#accept(outcome);
    else if (outcome.kind === "refused") this.#onRefused(outcome);
    else this.#onLost(outcome, link);
  }

  #accept({ milliseconds, fields }: OutcomeOf<"done">): void {
    this.#pace.ran(milliseconds, this);
    this.#signal?.removeEventListener("abort", this.#onAbort);
    this.#watch?.over(null);
    this.#answer.resolve(fields);
  }

  /** What was too large is not asked for again. Of a change it is told what has become of it. */
  #onExcess(outcome: Outcome, excess: ApiError): void {
    if (outcome.kind !== "lost") this.#pace.ran(outcome.milliseconds, this);
    if (this.#readOnly) this.#fail(excess);
    else if (outcome.kind === "done") this.refuse(madeButTooLarge());
    else this.refuse(outcome.kind === "refused" ? outcome.error : outcomeUnknown(outcome.cause));
  }

  #onRefused({ milliseconds, error, isStale, isInterrupted }: OutcomeOf<"refused">): void {
    this.#pace.ran(milliseconds, this);
    if (isInterrupted && this.#forget()) this.#goOnSlowly();
    else if (isStale && this.#mayRunAgain()) this.#runAgain();
    else this.refuse(error);
  }

  #onLost({ cause, sent }: OutcomeOf<"lost">, link: Link): void {
    if (this.#mayAskElsewhere(cause)) this.#askElsewhere();
    else if (!sent) this.#lane.submit(this);
    else if (!this.#readOnly) this.refuse(outcomeUnknown(cause));
    else if (this.#mayRunAfterLoss(link)) this.#runAgain();
    else this.refuse(connectionLost(cause));
  }

  /** A server that dies takes all its connections along: once more means on one that was opened after the first was lost. */
  #mayRunAfterLoss({ openedAt }: Link): boolean {
    const isFirstLoss = this.#lostAt === null || openedAt < this.#lostAt;
    this.#lostAt ??= performance.now();
    return isFirstLoss && this.#forget();
  }

  #goOnSlowly(): void {
    this.#isLong = this.#lane === this.#slow;
    this.#lane = this.#slow!;
    this.#lane.submit(this);
  }

  #mayRunAgain(): boolean {
    return !this.fresh && this.#forget();
  }

  /** A replica may be behind, gone or in recovery's way: what it refuses the primary is asked, but for what took its time. */
  #mayAskElsewhere(error: unknown): boolean {
    return this.#elsewhere !== undefined && !isTimeout(error) && this.#forget();
  }

  #askElsewhere(): void {
    const { lane, slow } = this.#elsewhere!;
    this.#lane = this.#lane === this.#slow ? slow : lane;
    this.#slow &&= slow;
    this.#elsewhere = undefined;
    this.#lane.submit(this);
  }

  #forget(): boolean {
    this.#allowance.giveBack(this.#held);
    this.#held = 0;
    return this.collector.restart();
  }

  #runAgain(): void {
    this.fresh = true;
    this.#lane.submit(this);
  }

  readonly #onAbort = (): void => {
    if (this.#link) this.#link.cancel();
    else {
      this.#lane.withdraw(this);
      this.#fail(this.#signal!.reason);
    }
  };
}

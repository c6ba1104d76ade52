import pg from "pg";
import { type ExecutionResult, GraphQLError } from "postgraphile/graphql";
import { isOutdated } from "../../engine/database/outdated.ts";
import type { Inbox, Loss } from "./inbox.ts";

type Step = IteratorResult<ExecutionResult, undefined>;
/** As Grafast gives them. */
export type Results = AsyncGenerator<ExecutionResult, void, void>;
const OVER: Step = { done: true, value: undefined };

/**
 * The results of a subscription as its subscriber gets them: without those about rows that it may not see, and with a word
 * where events were lost. Grafast's own stream takes events as fast as they come, however slowly they are read, and forgets
 * an error that comes while nobody waits; so the flow is governed here, and losses are told from here.
 */
export class Delivery implements AsyncGenerator<ExecutionResult, undefined, undefined> {
  readonly #results: Results;
  readonly #inbox: Inbox;
  /** What the stream has given and nobody has taken. */
  #step: IteratorResult<ExecutionResult, void> | null = null;
  #failure: { readonly error: unknown } | null = null;
  #isAsking = false;
  #isOver = false;
  #news = Promise.withResolvers<void>();

  constructor(results: Results, inbox: Inbox) {
    this.#results = results;
    this.#inbox = inbox;
    inbox.onLoss = () => this.#tell();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<Step> {
    while (!this.#isOver) {
      const loss = this.#inbox.takeLoss();
      if (loss) return this.#tellLoss(loss);
      this.#ask();
      if (!this.#step && !this.#failure) await this.#news.promise;
      if (this.#failure) {
        const { error } = this.#failure;
        await this.return();
        throw error;
      }
      const step = this.#step;
      this.#step = null;
      if (step?.done) await this.return();
      else if (step) {
        this.#inbox.delivered();
        // No event will read better.
        if (step.value.errors?.some(({ originalError }) => isOutdated(originalError))) await this.return();
        if (!isUnseen(step.value)) return { done: false, value: step.value };
      }
    }
    return OVER;
  }

  async return(): Promise<Step> {
    if (!this.#isOver) {
      this.#isOver = true;
      this.#inbox.close();
      this.#tell();
      await this.#results.return();
    }
    return OVER;
  }

  async throw(error: unknown): Promise<Step> {
    await this.return();
    throw error;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  #ask(): void {
    if (this.#isAsking || this.#step) return;
    this.#isAsking = true;
    this.#results.next().then(
      (step) => {
        this.#isAsking = false;
        this.#step = step;
        this.#tell();
      },
      (error: unknown) => {
        this.#failure = { error };
        this.#tell();
      },
    );
  }

  #tell(): void {
    this.#news.resolve();
    this.#news = Promise.withResolvers();
  }

  async #tellLoss(loss: Loss): Promise<Step> {
    if (loss === "overflow") await this.return();
    return { done: false, value: { errors: [lost(loss)] } };
  }
}

const WORDS: Readonly<Record<Loss, string>> = {
  gap: "Some events may have been missed: read again what you show. The subscription goes on.",
  overflow: "More has happened than was read, so events were dropped: read again what you show, and subscribe anew.",
};

function lost(loss: Loss): GraphQLError {
  return new GraphQLError(WORDS[loss], { extensions: { code: "EVENTS_MISSED" } });
}

/** What the subscriber may not see, or what is gone already, is nothing that happened to it. */
function isUnseen({ data, errors = [] }: ExecutionResult): boolean {
  return Object.values(data ?? {}).every((value) => value === null) && errors.every(saysUnseen);
}

function saysUnseen({ path, message, originalError }: GraphQLError): boolean {
  if (path?.length !== 1) return false;
  if (originalError instanceof pg.DatabaseError) return originalError.code === "42501";
  return /^Cannot return null for non-nullable field /.test(message);
}

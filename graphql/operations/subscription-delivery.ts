import { GraphQLError } from "grafast/graphql";
import pg from "pg";
import type { RowEvent } from "#plugins";
import { isSchemaOutdated } from "#postgres/database";
import { FifoQueue } from "#runtime/concurrency";
import { type OperationResult, textOf } from "./run-compiled.ts";

/** The queue of a subscription overflows after so many events; the client must then refetch. A queued event takes 8 bytes. */
const MAX_QUEUED = 10_000;
/** How many events may be in execution before their results are taken. */
const MAX_IN_PLAN = 16;
const END_OF_EVENTS: EventStep = { done: true, value: undefined };

type ResultStep = IteratorResult<OperationResult, undefined>;
type RunEvent = (event: RowEvent) => Promise<OperationResult>;
const END_OF_RESULTS: ResultStep = { done: true, value: undefined };

/**
 * The results of a subscription as its subscriber receives them: without rows that it may not see, and with an error where events
 * were lost.
 */
export class SubscriptionResults implements AsyncGenerator<OperationResult, undefined, undefined> {
  readonly #queue: EventQueue;
  /** In the order of the events. Several are read at the same time, as many as the queue gives. */
  readonly #results = new FifoQueue<Promise<OperationResult>>();
  /** True if no event follows. */
  #hasEnded = false;
  #isOver = false;
  #change = Promise.withResolvers<undefined>();

  constructor(queue: EventQueue, topic: string, runEvent: RunEvent) {
    this.#queue = queue;
    queue.onLoss = () => this.#wake();
    void this.#readAll(queue.subscribe(topic), runEvent);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<ResultStep> {
    while (!this.#isOver) {
      const loss = this.#queue.takeLoss();
      if (loss) return this.#emitLoss(loss);
      const result = await this.#nextResult();
      if (!result) continue;
      this.#results.shift();
      this.#queue.confirmDelivery();
      // The schema is outdated: every further event would fail as well.
      if (result.errors?.some(({ originalError }) => isSchemaOutdated(originalError))) await this.return();
      if (!isInvisibleRow(result)) return { done: false, value: result };
    }
    return END_OF_RESULTS;
  }

  async return(): Promise<ResultStep> {
    this.#isOver = true;
    this.#queue.close();
    this.#wake();
    return END_OF_RESULTS;
  }

  async throw(error: unknown): Promise<ResultStep> {
    await this.return();
    throw error;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  async #readAll(events: AsyncIterable<RowEvent>, runEvent: RunEvent): Promise<void> {
    for await (const event of events) {
      const result = runEvent(event);
      // Its error is thrown when the result is taken.
      result.catch(() => {});
      this.#results.push(result);
      this.#wake();
    }
    this.#hasEnded = true;
    this.#wake();
  }

  /** Waits for the first result; undefined if something else has changed before. */
  async #nextResult(): Promise<OperationResult | undefined> {
    const first = this.#results.first();
    if (!first && this.#hasEnded) {
      await this.return();
      return undefined;
    }
    try {
      return await (first ? Promise.race([first, this.#change.promise]) : this.#change.promise);
    } catch (error) {
      await this.return();
      throw error;
    }
  }

  #wake(): void {
    this.#change.resolve(undefined);
    this.#change = Promise.withResolvers();
  }

  async #emitLoss(loss: EventLoss): Promise<ResultStep> {
    if (loss === "overflow") await this.return();
    return { done: false, value: { errors: [lossError(loss)] } };
  }
}

const LOSS_MESSAGES: Readonly<Record<EventLoss, string>> = {
  gap: "Some events may have been missed: refetch your data. The subscription continues.",
  overflow: "Events were dropped because the client reads too slowly: refetch your data and subscribe again.",
};

function lossError(loss: EventLoss): GraphQLError {
  return new GraphQLError(LOSS_MESSAGES[loss], { extensions: { code: "EVENTS_MISSED" } });
}

/** A subscription has one field. */
const NULL_FIELD = /^\{"\w+":null\}$/;

/** True if the row is hidden from the subscriber or deleted already: such events are not delivered. */
function isInvisibleRow({ data, errors = [] }: OperationResult): boolean {
  return (data == null || NULL_FIELD.test(textOf(data))) && errors.every(isInvisibilityError);
}

function isInvisibilityError({ path, message, originalError }: GraphQLError): boolean {
  if (path?.length !== 1) return false;
  if (originalError instanceof pg.DatabaseError) return originalError.code === "42501";
  return /^Cannot return null for non-nullable field /.test(message);
}

type EventStep = IteratorResult<RowEvent, undefined>;

/** `gap`: notifications may have been lost. `overflow`: the subscriber reads too slowly, and further events are dropped. */
type EventLoss = "gap" | "overflow";

/** The events of one subscription that are not delivered yet. */
export class EventQueue {
  /** Called when there is a loss to report. */
  onLoss: () => void = () => {};
  readonly #join: (topic: string, queue: EventQueue) => void;
  readonly #leave: (queue: EventQueue) => void;
  readonly #waiting = new FifoQueue<RowEvent>();
  #inPlan = 0;
  #resolveNext: ((step: EventStep) => void) | null = null;
  #loss: EventLoss | null = null;
  #isOver = false;

  constructor(join: (topic: string, queue: EventQueue) => void, leave: (queue: EventQueue) => void) {
    this.#join = join;
    this.#leave = leave;
  }

  subscribe(topic: string): AsyncIterableIterator<RowEvent> {
    this.#join(topic, this);
    const events: AsyncIterableIterator<RowEvent> = {
      [Symbol.asyncIterator]: () => events,
      next: () => this.#next(),
      return: async () => this.#end(),
    };
    return events;
  }

  push(event: RowEvent): void {
    if (this.#isOver || this.#loss === "overflow") return;
    if (this.#waiting.length >= MAX_QUEUED) {
      this.#waiting.takeAll();
      this.reportLoss("overflow");
      return;
    }
    this.#waiting.push(event);
    this.#deliverNext();
  }

  reportLoss(loss: EventLoss): void {
    if (this.#loss !== "overflow") this.#loss = loss;
    this.onLoss();
  }

  takeLoss(): EventLoss | null {
    const loss = this.#loss;
    if (loss === "gap") this.#loss = null;
    return loss;
  }

  /** Call when the result of an event was taken. */
  confirmDelivery(): void {
    this.#inPlan--;
    this.#deliverNext();
  }

  close(): void {
    this.#end();
  }

  #next(): Promise<EventStep> {
    if (this.#isOver) return Promise.resolve(END_OF_EVENTS);
    return new Promise((resolve) => {
      this.#resolveNext = resolve;
      this.#deliverNext();
    });
  }

  #deliverNext(): void {
    if (!this.#resolveNext || this.#inPlan >= MAX_IN_PLAN) return;
    const event = this.#waiting.shift();
    if (!event) return;
    this.#inPlan++;
    this.#resolve({ done: false, value: event });
  }

  #resolve(step: EventStep): void {
    const resolveStep = this.#resolveNext;
    this.#resolveNext = null;
    resolveStep?.(step);
  }

  #end(): EventStep {
    if (!this.#isOver) {
      this.#isOver = true;
      this.#waiting.takeAll();
      this.#leave(this);
      this.#resolve(END_OF_EVENTS);
    }
    return END_OF_EVENTS;
  }
}

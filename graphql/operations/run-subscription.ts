import { locatedError } from "grafast/graphql";
import type { RowEvent } from "#plugins";
import { FifoQueue } from "#runtime/concurrency";
import { type EventField, findEventField } from "../compile/find-event-field.ts";
import { toPgText } from "../compile/text-values.ts";
import type { CallerDatabase } from "./caller-database.ts";
import type { RowEventHub } from "./events.ts";
import type { OperationOutcome, PlannedOperation } from "./operation.ts";
import type { OperationResult } from "./run-compiled.ts";
import { type EventQueue, SubscriptionResults } from "./subscription-delivery.ts";

type SubscriptionDependencies = { readonly database: Pick<CallerDatabase, "run">; readonly events: RowEventHub };

/** Opens the stream of results of a subscription, each of which is the row of an event. */
export async function runSubscription(
  { database, events }: SubscriptionDependencies,
  planned: PlannedOperation,
  runEvent: (event: RowEvent) => Promise<OperationResult>,
): Promise<OperationOutcome> {
  const { schema, document, operationName = null, variableValues } = planned.args;
  const field = findEventField({ schema, document, operationName, variables: variableValues ?? {} });
  if (!("source" in field)) return { kind: "result", result: { errors: field } };
  const queue = await events.open();
  try {
    const results = new EventResults(queue, await topicOf(database, planned, field), runEvent);
    return { kind: "stream", results: new SubscriptionResults(results, queue) };
  } catch (error) {
    queue.close();
    return { kind: "result", result: { errors: [locatedError(error, field.nodes, [field.key])] } };
  }
}

function topicOf(
  database: SubscriptionDependencies["database"],
  { context, requestInfo: { signal } }: PlannedOperation,
  { source, value }: EventField,
): Promise<string> {
  return source.topicFor(value, async (text, values) => {
    const statement = { text, values: values.map(toPgText) };
    const { rows } = await database.run(context, statement, { readOnly: true, signal });
    const cell = rows[0]?.[0];
    return cell == null ? cell : String(cell);
  });
}

type ResultStep = IteratorResult<OperationResult, void>;

/** The results of events, in the order of the events. Several are read at the same time, as many as the queue gives. */
class EventResults implements AsyncGenerator<OperationResult, void, void> {
  readonly #events: AsyncIterableIterator<RowEvent>;
  readonly #results = new FifoQueue<Promise<OperationResult>>();
  #isOver = false;
  #change = Promise.withResolvers<void>();

  constructor(queue: EventQueue, topic: string, runEvent: (event: RowEvent) => Promise<OperationResult>) {
    this.#events = queue.subscribe(topic);
    void this.#readAll(runEvent);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<ResultStep> {
    while (this.#results.length === 0 && !this.#isOver) await this.#change.promise;
    const result = this.#results.shift();
    return result ? { done: false, value: await result } : { done: true, value: undefined };
  }

  async return(): Promise<ResultStep> {
    await this.#events.return!();
    return { done: true, value: undefined };
  }

  async throw(error: unknown): Promise<ResultStep> {
    await this.return();
    throw error;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  async #readAll(runEvent: (event: RowEvent) => Promise<OperationResult>): Promise<void> {
    for await (const event of this.#events) {
      const result = runEvent(event);
      // Its error is thrown when the result is taken.
      result.catch(() => {});
      this.#results.push(result);
      this.#wake();
    }
    this.#isOver = true;
    this.#wake();
  }

  #wake(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }
}

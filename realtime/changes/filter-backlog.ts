import { setTimeout as sleep } from "node:timers/promises";
import type { Outbox } from "../protocol/outbox.ts";
import type { ChangeSubscriber, StreamPosition } from "./subscriber.ts";

/** Changes that wait until the filters of their subscriber have been evaluated. */
export type BacklogBatch = {
  /** Resolves with the subscriber's position after the batch. */
  readonly ready: Promise<StreamPosition>;
  readonly deliver: () => Promise<void>;
  readonly changes: number;
  readonly bytes: number;
};

type SubscriberBacklog = {
  readonly batches: BacklogBatch[];
  /** How far the subscriber was sent changes. */
  position: StreamPosition;
  readonly drained: PromiseWithResolvers<void>;
};

/** How much may wait for one subscriber, not counting the first batch. */
const MAX_CHANGES = 2_000;
const MAX_BYTES = 8 * 2 ** 20;
/** A subscriber above this share of the limit is waited for. By then a new filter has been evaluated, or has failed. */
const PACING_LOAD = 1 / 4;
const MAX_PACING_MS = 300;
const PACING_POLL_MS = 5;

/** The changes that wait for the filters of each subscriber: nobody else waits for them. */
export class FilterBacklogs {
  readonly #backlogs = new Map<ChangeSubscriber, SubscriberBacklog>();
  /** Sockets that were waited for in vain and have been sent nothing since: they are not waited for again. */
  readonly #stuck = new WeakSet<Outbox>();

  get isEmpty(): boolean {
    return this.#backlogs.size === 0;
  }

  has(subscriber: ChangeSubscriber): boolean {
    return this.#backlogs.has(subscriber);
  }

  /** The position of a subscriber that has a backlog. */
  positionOf(subscriber: ChangeSubscriber): StreamPosition | null {
    return this.#backlogs.get(subscriber)?.position ?? null;
  }

  /** Resolves when the subscriber has no backlog. */
  async drained(subscriber: ChangeSubscriber): Promise<void> {
    await this.#backlogs.get(subscriber)?.drained.promise;
  }

  /** `position` is how far the subscriber was sent changes, where it has no backlog yet. */
  add(subscriber: ChangeSubscriber, position: StreamPosition, batch: BacklogBatch): void {
    // It may reject before it is awaited.
    batch.ready.catch(() => {});
    const existing = this.#backlogs.get(subscriber);
    if (existing) {
      existing.batches.push(batch);
      if (backlogLoad(existing) > 1) this.#fail(subscriber, "its filters are slower than changes come");
      return;
    }
    const backlog = { batches: [batch], position, drained: Promise.withResolvers<void>() };
    this.#backlogs.set(subscriber, backlog);
    void this.#drain(subscriber, backlog);
  }

  remove(subscriber: ChangeSubscriber): void {
    this.#backlogs.get(subscriber)?.drained.resolve();
    this.#backlogs.delete(subscriber);
  }

  clear(): void {
    for (const subscriber of [...this.#backlogs.keys()]) this.remove(subscriber);
  }

  /** Waits a little for subscribers that fall behind. */
  async pace(): Promise<void> {
    const end = performance.now() + MAX_PACING_MS;
    const isFull = (subscriber: ChangeSubscriber) => backlogLoad(this.#backlogs.get(subscriber)) > PACING_LOAD;
    let slow = [...this.#backlogs.keys()].filter((each) => !this.#stuck.has(each.outbox) && isFull(each));
    while (slow.length > 0 && performance.now() < end) {
      await sleep(PACING_POLL_MS);
      slow = slow.filter(isFull);
    }
    for (const { outbox } of slow) this.#stuck.add(outbox);
  }

  async #drain(subscriber: ChangeSubscriber, backlog: SubscriberBacklog): Promise<void> {
    const isOver = () => this.#backlogs.get(subscriber) !== backlog;
    try {
      while (backlog.batches.length > 0) {
        const batch = backlog.batches[0]!;
        const end = await batch.ready;
        if (isOver()) return;
        await batch.deliver();
        if (isOver()) return;
        backlog.position = end;
        backlog.batches.shift();
        this.#stuck.delete(subscriber.outbox);
      }
      if (!isOver()) this.remove(subscriber);
    } catch (error) {
      if (!isOver()) this.#fail(subscriber, (error as Error).message);
    }
  }

  #fail(subscriber: ChangeSubscriber, reason: string): void {
    this.remove(subscriber);
    subscriber.reportGap(reason);
  }
}

function backlogLoad(backlog: SubscriberBacklog | undefined): number {
  if (!backlog || backlog.batches.length < 2) return 0;
  const sum = (of: "changes" | "bytes") => backlog.batches.reduce((total, batch) => total + batch[of], 0);
  return Math.max(sum("changes") / MAX_CHANGES, sum("bytes") / MAX_BYTES);
}

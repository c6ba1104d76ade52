import { setTimeout as sleep } from "node:timers/promises";
import type { Outbox } from "../outbox.ts";
import type { Position } from "./position.ts";
import type { Subscriber } from "./subscriber.ts";

/** Changes that wait until the filters of their subscriber have been applied. */
export type Batch = {
  /** Resolves when that has been done, with how far the subscriber has been told behind it. */
  readonly ready: Promise<Position>;
  readonly tell: () => Promise<void>;
  readonly changes: number;
  readonly bytes: number;
};

type Backlog = {
  readonly batches: Batch[];
  /** How far the subscriber has been told. */
  position: Position;
  readonly drained: PromiseWithResolvers<void>;
};

/** What may wait for one subscriber, but for a single batch. */
const MOST_CHANGES = 2_000;
const MOST_BYTES = 8 * 2 ** 20;
/** Who has so much of that waiting is waited for, so that much at once is not too much. By then a new filter has been applied, or has failed. */
const FULL = 1 / 4;
const PATIENCE_MS = 300;
const LOOK_MS = 5;

/** What waits for the filters of each subscriber: nobody else waits for them. */
export class Backlogs {
  readonly #backlogs = new Map<Subscriber, Backlog>();
  /** Sockets that were waited for in vain, and have been told of nothing since: they are not waited for again. */
  readonly #late = new WeakSet<Outbox>();

  get isEmpty(): boolean {
    return this.#backlogs.size === 0;
  }

  has(subscriber: Subscriber): boolean {
    return this.#backlogs.has(subscriber);
  }

  /** How far a subscriber for whom something waits has been told. */
  positionOf(subscriber: Subscriber): Position | null {
    return this.#backlogs.get(subscriber)?.position ?? null;
  }

  /** Resolves when nothing waits for the subscriber any more. */
  async drained(subscriber: Subscriber): Promise<void> {
    await this.#backlogs.get(subscriber)?.drained.promise;
  }

  /** `position` is how far the subscriber has been told, should nothing wait for it yet. */
  add(subscriber: Subscriber, position: Position, batch: Batch): void {
    // It may fail before it is looked at.
    batch.ready.catch(() => {});
    const known = this.#backlogs.get(subscriber);
    if (known) {
      known.batches.push(batch);
      if (loadOf(known) > 1) this.#end(subscriber, "its filters are slower than changes come");
      return;
    }
    const backlog = { batches: [batch], position, drained: Promise.withResolvers<void>() };
    this.#backlogs.set(subscriber, backlog);
    void this.#work(subscriber, backlog);
  }

  remove(subscriber: Subscriber): void {
    this.#backlogs.get(subscriber)?.drained.resolve();
    this.#backlogs.delete(subscriber);
  }

  clear(): void {
    for (const subscriber of [...this.#backlogs.keys()]) this.remove(subscriber);
  }

  /** Waits a little for those who are behind. */
  async pace(): Promise<void> {
    const end = performance.now() + PATIENCE_MS;
    const isFull = (subscriber: Subscriber) => loadOf(this.#backlogs.get(subscriber)) > FULL;
    let slow = [...this.#backlogs.keys()].filter((each) => !this.#late.has(each.outbox) && isFull(each));
    while (slow.length > 0 && performance.now() < end) {
      await sleep(LOOK_MS);
      slow = slow.filter(isFull);
    }
    for (const { outbox } of slow) this.#late.add(outbox);
  }

  async #work(subscriber: Subscriber, backlog: Backlog): Promise<void> {
    const isOver = () => this.#backlogs.get(subscriber) !== backlog;
    try {
      while (backlog.batches.length > 0) {
        const batch = backlog.batches[0]!;
        const end = await batch.ready;
        if (isOver()) return;
        await batch.tell();
        if (isOver()) return;
        backlog.position = end;
        backlog.batches.shift();
        this.#late.delete(subscriber.outbox);
      }
      if (!isOver()) this.remove(subscriber);
    } catch (error) {
      if (!isOver()) this.#end(subscriber, (error as Error).message);
    }
  }

  #end(subscriber: Subscriber, reason: string): void {
    this.remove(subscriber);
    subscriber.lose(reason);
  }
}

function loadOf(backlog: Backlog | undefined): number {
  if (!backlog || backlog.batches.length < 2) return 0;
  const sum = (of: "changes" | "bytes") => backlog.batches.reduce((total, batch) => total + batch[of], 0);
  return Math.max(sum("changes") / MOST_CHANGES, sum("bytes") / MOST_BYTES);
}

import { setTimeout as sleep } from "node:timers/promises";
import type { Outbox } from "../outbox.ts";

/** The longest that all wait for those who read slowly, and how often it is looked. */
const PATIENCE_MS = 250;
const LOOK_MS = 5;

/** Waits for readers who are slow, so that much at once is not too much for them; and not for those who do not read at all. */
export class Pacer {
  readonly #stuck = new WeakSet<Outbox>();
  readonly #patienceMs: number;

  constructor(patienceMs = PATIENCE_MS) {
    this.#patienceMs = patienceMs;
  }

  async wait(outboxes: Iterable<Outbox>): Promise<void> {
    const asked = [...new Set(outboxes)];
    for (const outbox of asked) outbox.paced();
    let slow = asked.filter((outbox) => outbox.isFull && !this.#stuck.has(outbox));
    const end = performance.now() + this.#patienceMs;
    while (slow.length > 0 && performance.now() < end) {
      await sleep(LOOK_MS);
      slow = slow.filter((outbox) => outbox.isFull);
    }
    for (const outbox of slow) this.#stuck.add(outbox);
  }
}

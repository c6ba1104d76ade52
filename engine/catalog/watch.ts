import type { AsOwner } from "../database/as-owner.ts";
import { type Fingerprint, readFingerprint } from "./fingerprint.ts";

export type WatchOptions = {
  readonly asOwner: AsOwner;
  readonly everyMs: number;
  onDifference(): void;
  /** Nothing has changed since the catalogue was read. */
  onAgreement(): void;
};

/** A look may take this part of the time, and no more. */
const DUTY = 1 / 50;
const LONGEST_PAUSE_MS = 60_000;
/** Between two looks that are asked for. */
const SHORTEST_PAUSE_MS = 250;

/** Looks now and then whether the database is still the one that was read. What cannot be asked now is asked next time. */
export class Watch {
  readonly #options: WatchOptions;
  #known: Fingerprint | null = null;
  /** In a row. What is rewritten all the time and never differs, as in a schema that is not served, is not read all the time. */
  #falseAlarms = 0;
  #timer: NodeJS.Timeout | undefined;
  #dueAt = Number.POSITIVE_INFINITY;
  #restUntil = 0;
  #looking: Promise<void> | null = null;
  #closed = false;

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  /** What the catalogue that is served was read from; and whether reading it brought anything new. */
  settle(fingerprint: Fingerprint, { changed }: { changed: boolean }): void {
    const wasAlarm = this.#known !== null && this.#known.digest !== fingerprint.digest;
    if (changed) this.#falseAlarms = 0;
    else if (wasAlarm) this.#falseAlarms++;
    this.#known = fingerprint;
    if (!this.#timer) this.#lookAfter(this.#options.everyMs);
  }

  /** At once, beyond the regular looks. */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  /** Ahead of the next regular look, but not more often than looking costs, and not where it is mostly in vain. */
  lookSoon(): void {
    if (!this.#timer || this.#looking) return;
    const now = performance.now();
    const dueAt = Math.max(now, this.#restUntil);
    if (dueAt < this.#dueAt) this.#lookAfter(dueAt - now);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#looking;
  }

  #lookAfter(pause: number): void {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    this.#dueAt = performance.now() + pause;
    this.#timer = setTimeout(async () => {
      const startedAt = performance.now();
      await this.look();
      const now = performance.now();
      const cost = now - startedAt;
      const inVain = 2 ** this.#falseAlarms;
      const pauseOf = (least: number) => Math.max(Math.min(least * inVain, LONGEST_PAUSE_MS), cost / DUTY);
      this.#restUntil = now + pauseOf(SHORTEST_PAUSE_MS);
      this.#lookAfter(pauseOf(this.#options.everyMs));
    }, pause);
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    const known = this.#known;
    if (!known) return;
    const seen = await this.#options.asOwner((client) => readFingerprint(client, known)).catch(() => null);
    // A load that ended meanwhile knows better.
    if (!seen || this.#closed || this.#known !== known) return;
    if (seen.digest !== known.digest) {
      this.#options.onDifference();
      return;
    }
    this.#known = seen;
    this.#falseAlarms = 0;
    this.#options.onAgreement();
  }
}

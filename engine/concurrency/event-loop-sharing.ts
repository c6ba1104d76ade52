import { setImmediate as nextTurn, setTimeout as sleep, setImmediate as turnOver } from "node:timers/promises";
import { afterEventLoopTurns } from "./stepwise.ts";

/** Of all connections together, so much is read in some turns of the event loop. */
const BYTES_PER_INTERVAL = 256 * 1024;
/** At most so much comes in one piece from a socket. */
const BYTES_PER_PIECE = 64 * 1024;
/** Shorter pieces are not counted: nearly all requests and messages are. */
const MIN_COUNTED_BYTES = 16 * 1024;

let bytesLeft = BYTES_PER_INTERVAL;
let isIntervalRunning = false;
/** In the order in which they are read again. */
const pausedSources: PausableSource[] = [];

const SLICE_MS = 8;
const ITEMS_PER_TIME_CHECK = 64;

const PAUSE_FACTOR = 2;
/** A turn of the event loop in which much else happened is not waited for longer. */
const LONGEST_PAUSE_MS = 100;

/**
 * Resolves when the caller may do something that holds the event loop for some milliseconds and cannot be interrupted. One
 * such piece is done in a turn of the event loop, and the next one after a pause twice as long as that turn was: so large work of any
 * kind takes at most a third of the processor. The owners of what waits are served in rotation.
 */
export function waitForLargeWorkSlot(owner: object | string): Promise<void> {
  return new Promise((resolve) => {
    void largeWorkQueue.run(owner, async () => {
      const startedAt = performance.now();
      resolve();
      await turnOver();
      await sleep(Math.min(PAUSE_FACTOR * (performance.now() - startedAt), LONGEST_PAUSE_MS));
    });
  });
}

type QueuedWork = () => Promise<void>;

/** Does the work of many owners, a few pieces at a time, each owner in turn: one who brings much waits for it longer, and nobody else does. */
export class FairWorkQueue {
  readonly #maxRunning: number;
  /** Those who wait, in the order of their turns. */
  readonly #waiting = new Map<object | string, QueuedWork[]>();
  #running = 0;

  constructor(most: number) {
    this.#maxRunning = most;
  }

  /** How much an owner waits for. */
  waiting(owner: object | string): number {
    return this.#waiting.get(owner)?.length ?? 0;
  }

  run<Result>(owner: object | string, work: () => Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      const own = this.#waiting.get(owner) ?? [];
      own.push(() => work().then(resolve, reject));
      this.#waiting.set(owner, own);
      this.#startNext();
    });
  }

  #startNext(): void {
    if (this.#running >= this.#maxRunning) return;
    const [turn] = this.#waiting;
    if (!turn) return;
    const [owner, works] = turn;
    const work = works.shift()!;
    this.#waiting.delete(owner);
    if (works.length > 0) this.#waiting.set(owner, works);
    this.#running++;
    void work().then(() => {
      this.#running--;
      this.#startNext();
    });
  }
}

/** There is but one event loop to share. */
const largeWorkQueue = new FairWorkQueue(1);

/** Something that brings pieces while it is not paused, such as a socket. */
export type PausableSource = { pause(): void; resume(): void };

/**
 * To be called with each piece that a source has brought. When much was read in these turns of the event loop, the source is paused
 * until its turn comes: otherwise a few dozen connections that send as fast as they can hold the loop for as long as
 * it takes to handle megabytes of each.
 */
export function paceReading(source: PausableSource, bytes: number): void {
  if (bytes < MIN_COUNTED_BYTES) return;
  bytesLeft -= bytes;
  if (!isIntervalRunning) {
    isIntervalRunning = true;
    afterEventLoopTurns(resumeSources);
  }
  if (bytesLeft > 0) return;
  source.pause();
  pausedSources.push(source);
}

function resumeSources(): void {
  isIntervalRunning = pausedSources.length > 0;
  bytesLeft = BYTES_PER_INTERVAL;
  if (!isIntervalRunning) return;
  for (const source of pausedSources.splice(0, BYTES_PER_INTERVAL / BYTES_PER_PIECE)) source.resume();
  afterEventLoopTurns(resumeSources);
}

/** Goes through the items and lets requests in between: a large schema must not hold the event loop. */
export async function forEachInSlices<Item>(items: Iterable<Item>, work: (item: Item) => void): Promise<void> {
  let pauseAt = performance.now() + SLICE_MS;
  let count = 0;
  for (const item of items) {
    work(item);
    if (++count % ITEMS_PER_TIME_CHECK === 0 && performance.now() > pauseAt) {
      await nextTurn();
      pauseAt = performance.now() + SLICE_MS;
    }
  }
}

import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import type { AbortLike } from "./abort.ts";
import { afterEventLoopTurns, runStepwise, type Stepwise } from "./stepwise.ts";

/** The number of bytes that all connections together may read in a few turns of the event loop. */
const BYTES_PER_INTERVAL = 256 * 1024;
/** The maximum size of a chunk from a socket. */
const BYTES_PER_PIECE = 64 * 1024;
/** Shorter chunks are not counted: nearly all requests and messages are shorter. */
const MIN_COUNTED_BYTES = 16 * 1024;

let bytesLeft = BYTES_PER_INTERVAL;
let isIntervalRunning = false;
/** The paused sources in the order in which they resume. */
const pausedSources: PausableSource[] = [];

const SLICE_MS = 8;
const ITEMS_PER_TIME_CHECK = 64;

const PAUSE_FACTOR = 2;
/** The maximum pause, so that a busy turn of the event loop does not extend it. */
const LONGEST_PAUSE_MS = 100;

/**
 * Resolves when the caller may block the event loop for some milliseconds. One such piece of work runs per turn, and
 * the next one after a pause twice as long as that turn: so large work takes at most a third of the processor. The
 * owners of waiting work are served in rotation.
 */
export function waitForLargeWorkSlot(owner: object | string): Promise<void> {
  return new Promise((resolve) => {
    void largeWorkQueue.run(owner, async () => {
      const startedAt = performance.now();
      resolve();
      await nextTurn();
      await sleep(Math.min(PAUSE_FACTOR * (performance.now() - startedAt), LONGEST_PAUSE_MS));
    });
  });
}

type QueuedWork = () => Promise<void>;

/** Runs the work of many owners, a few pieces at a time, in rotation: an owner with much work delays only itself. */
export class FairWorkQueue {
  readonly #maxRunning: number;
  /** The waiting work by owner, in the order of their turns. */
  readonly #waiting = new Map<object | string, QueuedWork[]>();
  #running = 0;

  constructor(max: number) {
    this.#maxRunning = max;
  }

  /** Returns the number of pieces that an owner waits for. */
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

/** There is one queue, since there is one event loop. */
const largeWorkQueue = new FairWorkQueue(1);

const longWorkQueue = new FairWorkQueue(1);

/**
 * Runs long work in slices between turns of the event loop. One runs at a time, and the owners are served in rotation. Work
 * that never yields is done at once.
 */
export function runLongWork<T>(
  owner: object | string,
  steps: Stepwise<T>,
  signal: AbortLike | null = null,
): T | Promise<T> {
  const first = steps.next();
  if (first.done) return first.value;
  return longWorkQueue.run(owner, async () => runStepwise(steps, signal));
}

/** A source of chunks that can be paused, such as a socket. */
export type PausableSource = { pause(): void; resume(): void };

/**
 * Called for each chunk of a source. If much was read in recent turns of the event loop, pauses the source until its
 * turn: otherwise a few dozen connections that send at full speed would block the event loop while megabytes of each
 * are handled.
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

/** Processes items in slices and yields to requests in between: a large schema must not block the event loop. */
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

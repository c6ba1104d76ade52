import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import type { AbortLike } from "./abort.ts";
import type { Stepwise } from "./stepwise.ts";

/**
 * The number of event-loop turns between two slices of long work. Each turn accepts one connection and advances each
 * request by one step, so without a gap a thousand connections would wait for as many slices.
 */
const TURNS_BETWEEN_WORK = 8;

/** Turns that accept a connection are not counted, up to this number: so the work does not delay many new connections. */
const MAX_ACCEPTING_TURNS = 1_000;

let acceptedConnections = 0;

/** The duration of a slice. */
const SLICE_MS = 2;

type QueuedComputation = {
  readonly steps: Stepwise<unknown>;
  readonly signal: AbortLike | null;
  readonly resolve: (value: never) => void;
  readonly reject: (reason: unknown) => void;
};

/** There is one queue for all computations, since there is one event loop. */
const queue: QueuedComputation[] = [];

/**
 * Runs a short computation synchronously. A longer one continues in slices between turns of the event loop, in a queue
 * with all others. Aborts with the signal.
 */
export function runStepwise<T>(steps: Stepwise<T>, signal: AbortLike | null = null): T | Promise<T> {
  const first = steps.next();
  if (first.done) return first.value;
  return new Promise<T>((resolve, reject) => {
    if (queue.push({ steps, signal, resolve, reject }) === 1) afterEventLoopTurns(runNextSlice);
  });
}

function runNextSlice(): void {
  const waiting = queue[0]!;
  const isOver = runSlice(waiting);
  queue.shift();
  if (!isOver) queue.push(waiting);
  if (queue.length > 0) afterEventLoopTurns(runNextSlice);
}

function runSlice({ steps, signal, resolve, reject }: QueuedComputation): boolean {
  const pauseAt = performance.now() + SLICE_MS;
  try {
    if (signal?.aborted) throw signal.reason;
    for (;;) {
      const step = steps.next();
      if (step.done) {
        resolve(step.value as never);
        return true;
      }
      if (performance.now() >= pauseAt) return false;
    }
  } catch (error) {
    reject(error);
    return true;
  }
}

/** Called for each connection that is accepted. */
export function noteAcceptedConnection(): void {
  acceptedConnections++;
}

/** Calls back after some turns of the event loop. */
function afterEventLoopTurns(callback: () => void): void {
  let turns = TURNS_BETWEEN_WORK;
  let acceptingTurns = MAX_ACCEPTING_TURNS;
  let accepted = acceptedConnections;
  const takeTurn = () => {
    if (accepted === acceptedConnections || --acceptingTurns < 0) turns--;
    accepted = acceptedConnections;
    if (turns > 0) setImmediate(takeTurn);
    else callback();
  };
  setImmediate(takeTurn);
}

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

/** The duration of a slice of items. */
const ITEMS_SLICE_MS = 8;
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
  let pauseAt = performance.now() + ITEMS_SLICE_MS;
  let count = 0;
  for (const item of items) {
    work(item);
    if (++count % ITEMS_PER_TIME_CHECK === 0 && performance.now() > pauseAt) {
      await nextTurn();
      pauseAt = performance.now() + ITEMS_SLICE_MS;
    }
  }
}

import type { AbortLike } from "./abort.ts";

/**
 * The number of event-loop turns between two slices of long work. Each turn accepts one connection and advances each
 * request by one step, so without a gap a thousand connections would wait for as many slices.
 */
const TURNS_BETWEEN_WORK = 8;

/** Turns that accept a connection are not counted, up to this number: so the work does not delay many new connections. */
const MAX_ACCEPTING_TURNS = 1_000;

let acceptedConnections = 0;

/** A computation that yields at points where requests may run. A short one never yields. */
export type Stepwise<T> = Generator<undefined, T, undefined>;

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

/** Runs without yielding, for computations that are known to be short, and for command-line programs. */
export function runToCompletion<T>(steps: Stepwise<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
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
export function afterEventLoopTurns(callback: () => void): void {
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

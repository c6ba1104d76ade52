import type { AbortLike } from "./abort.ts";

/**
 * In a turn of the event loop one connection is accepted, and a request goes one step on. Between two pieces of long work there
 * are so many turns without any: else a thousand connections would wait for as many pieces.
 */
const TURNS_BETWEEN_WORK = 8;

/** A computation that yields where requests may have their turn. One that is short never does. */
export type Stepwise<T> = Generator<undefined, T, undefined>;

/** For so long one computation goes on before others have their turn. */
const SLICE_MS = 2;

type QueuedComputation = {
  readonly steps: Stepwise<unknown>;
  readonly signal: AbortLike | null;
  readonly resolve: (value: never) => void;
  readonly reject: (reason: unknown) => void;
};

/** There is but one event loop to share, so all computations wait in one queue. */
const queue: QueuedComputation[] = [];

/**
 * Does what is short at once. The rest of a long computation is done in slices, one in some turns of the event loop, however
 * many computations there are. One whose signal is aborted is given up.
 */
export function runStepwise<T>(steps: Stepwise<T>, signal: AbortLike | null = null): T | Promise<T> {
  const first = steps.next();
  if (first.done) return first.value;
  return new Promise<T>((resolve, reject) => {
    if (queue.push({ steps, signal, resolve, reject }) === 1) afterEventLoopTurns(runNextSlice);
  });
}

/** Without a pause: for what is known to be short, and for programs that nobody else waits for. */
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

/** Calls back when others have had some turns of the event loop. */
export function afterEventLoopTurns(callback: () => void, turns = TURNS_BETWEEN_WORK): void {
  setImmediate(() => {
    if (turns <= 1) callback();
    else afterEventLoopTurns(callback, turns - 1);
  });
}

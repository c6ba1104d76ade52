import type { Abort } from "./abort.ts";
import { afterLightTurns } from "./after-turns.ts";

/** A computation that yields where requests may have their turn. One that is short never does. */
export type Stepwise<T> = Generator<undefined, T, undefined>;

/** For so long one computation goes on before others have their turn. */
const SLICE_MS = 2;

type Waiting = {
  readonly steps: Stepwise<unknown>;
  readonly signal: Abort | null;
  readonly resolve: (value: never) => void;
  readonly reject: (reason: unknown) => void;
};

/** There is but one event loop to share, so all computations wait in one queue. */
const queue: Waiting[] = [];

/**
 * Does what is short at once. The rest of a long computation is done in slices, one in some turns of the event loop, however
 * many computations there are. One whose signal is aborted is given up.
 */
export function runStepwise<T>(steps: Stepwise<T>, signal: Abort | null = null): T | Promise<T> {
  const first = steps.next();
  if (first.done) return first.value;
  return new Promise<T>((resolve, reject) => {
    if (queue.push({ steps, signal, resolve, reject }) === 1) afterLightTurns(takeTurn);
  });
}

/** Without a pause: for what is known to be short, and for programs that nobody else waits for. */
export function runAtOnce<T>(steps: Stepwise<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

function takeTurn(): void {
  const waiting = queue[0]!;
  const isOver = goOn(waiting);
  queue.shift();
  if (!isOver) queue.push(waiting);
  if (queue.length > 0) afterLightTurns(takeTurn);
}

function goOn({ steps, signal, resolve, reject }: Waiting): boolean {
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

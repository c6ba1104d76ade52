/** A computation that yields at points where requests may run. A short one never yields. */
export type Stepwise<T> = Generator<undefined, T, undefined>;

/** Runs without yielding, for computations that are known to be short, and for command-line programs. */
export function runToCompletion<T>(steps: Stepwise<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done) return step.value;
  }
}

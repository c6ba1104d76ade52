const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/** Starts the work unless a signal has come, and rejects as soon as one comes. */
type UntilInterrupted = <T>(work: () => Promise<T>) => Promise<T>;

/** npm and the terminal both send SIGINT for one Ctrl-C: signals this soon after the first one count as the same. */
const REPEATED_MS = 5000;

/**
 * Runs work that has to clean up before the process ends. Meanwhile a signal ends only the work passed to `untilInterrupted`, not the process.
 * Cleaning up can take long, for example on a server that does not answer: a later signal ends the process at once.
 */
export async function withInterruption<T>(work: (untilInterrupted: UntilInterrupted) => Promise<T>): Promise<T> {
  const interruption = new AbortController();
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => {});
  let first: number | null = null;
  const stopListening = () => {
    for (const signal of SIGNALS) process.off(signal, interrupt);
  };
  const interrupt = (signal: NodeJS.Signals) => {
    first ??= performance.now();
    interruption.abort(new Error(`Stopped by ${signal}.`));
    reject(interruption.signal.reason);
    if (performance.now() - first < REPEATED_MS) return;
    stopListening();
    process.kill(process.pid, signal);
  };
  for (const signal of SIGNALS) process.on(signal, interrupt);
  try {
    return await work((interruptible) => {
      interruption.signal.throwIfAborted();
      return Promise.race([promise, interruptible()]);
    });
  } finally {
    stopListening();
  }
}

const SIGNALS = ["SIGINT", "SIGTERM"] as const;

/**
 * Runs work that has to clean up before the process ends. A signal does not end the process meanwhile, it rejects the promise that the work
 * gets. Until the work has ended, since npm and the terminal both send SIGINT for one Ctrl-C.
 */
export async function withInterruption<T>(work: (interruption: Promise<never>) => Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  promise.catch(() => {});
  const interrupt = (signal: NodeJS.Signals) => reject(new Error(`Stopped by ${signal}.`));
  for (const signal of SIGNALS) process.on(signal, interrupt);
  try {
    return await work(promise);
  } finally {
    for (const signal of SIGNALS) process.off(signal, interrupt);
  }
}

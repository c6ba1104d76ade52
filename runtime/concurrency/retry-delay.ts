const FIRST_DELAY_MS = 50;
const MAX_DELAY_MS = 1_000;
const MAX_AWAITED_DELAY_MS = 200;

/** Returns the delay before the next attempt, with random jitter in its upper half, so that processes do not retry simultaneously. */
export function retryDelay(attempt: number, random = Math.random()): number {
  return exponentialDelay(MAX_DELAY_MS, attempt, random);
}

/** Returns the delay while a request waits for the attempt to succeed. */
export function awaitedRetryDelay(attempt: number, random = Math.random()): number {
  return exponentialDelay(MAX_AWAITED_DELAY_MS, attempt, random);
}

function exponentialDelay(longest: number, attempt: number, random: number): number {
  const delay = Math.min(longest, FIRST_DELAY_MS * 2 ** (attempt - 1));
  return delay * (0.5 + random / 2);
}

const FIRST_DELAY_MS = 50;
const LONGEST_DELAY_MS = 1_000;

/** The pause before the next attempt, at random in its upper half so that many processes do not knock at once. */
export function delayBefore(attempt: number, random = Math.random()): number {
  const delay = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (attempt - 1));
  return delay * (0.5 + random / 2);
}

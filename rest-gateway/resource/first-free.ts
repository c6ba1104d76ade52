/** The first of the names that is not taken; where all are, the first one with a number. */
export function firstFree(
  candidates: readonly [string, ...string[]],
  isTaken: (name: string) => boolean,
  numbered: (name: string, number: number) => string,
): string {
  const free = candidates.find((name) => !isTaken(name));
  if (free !== undefined) return free;
  let number = 2;
  while (isTaken(numbered(candidates[0], number))) number++;
  return numbered(candidates[0], number);
}

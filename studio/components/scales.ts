/** The smallest round number that is not below: 1, 2 or 5 times a power of ten. */
export function roundUp(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * (1 - 1e-9))!;
}

/** Maps the numbers from `from` to `to` to those from `start` to `end`. */
export function linearScale(from: number, to: number, start: number, end: number): (value: number) => number {
  const span = to - from || 1;
  return (value) => start + ((value - from) / span) * (end - start);
}

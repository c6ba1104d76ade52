/** Returns the smallest round number that is at least the value: 1, 2 or 5 times a power of ten. */
export function roundUp(value: number): number {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value * (1 - 1e-9))!;
}

/** Returns the smallest round number of bytes, kilobytes and so on that is at least the value. */
export function roundUpBytes(bytes: number): number {
  const unit = 1024 ** Math.floor(Math.log2(Math.max(1, bytes)) / 10);
  return Math.min(1024, roundUp(bytes / unit)) * unit;
}

/** Maps the range of values from `from` to `to` to the range from `start` to `end`. */
export function linearScale(from: number, to: number, start: number, end: number): (value: number) => number {
  const span = to - from || 1;
  return (value) => start + ((value - from) / span) * (end - start);
}

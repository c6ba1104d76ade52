export type Point = { readonly x: number; readonly y: number };
export type Line = {
  readonly slope: number;
  /** The standard error of the slope: two of them to either side hold the truth nineteen times of twenty. */
  readonly error: number;
};

/** The straight line that misses the points by the least squares. */
export function lineThrough(points: readonly Point[]): Line {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const middle = { x: mean(points.map(({ x }) => x)), y: mean(points.map(({ y }) => y)) };
  const spread = points.reduce((sum, { x }) => sum + (x - middle.x) ** 2, 0);
  const slope = points.reduce((sum, { x, y }) => sum + (x - middle.x) * (y - middle.y), 0) / spread;
  const missed = points.reduce((sum, { x, y }) => sum + (y - middle.y - slope * (x - middle.x)) ** 2, 0);
  return { slope, error: Math.sqrt(missed / (points.length - 2) / spread) };
}

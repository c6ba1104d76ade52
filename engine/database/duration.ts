const MILLISECONDS: Readonly<Record<string, number>> = {
  us: 0.001,
  ms: 1,
  s: 1_000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** A duration as Postgres's settings spell it, in milliseconds: `8000`, `8s`, `1.5 min`. Null when it is none. */
export function readDuration(text: string): number | null {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$/.exec(text);
  const unit = MILLISECONDS[match?.[2] || "ms"];
  return match && unit !== undefined ? Number(match[1]) * unit : null;
}

/** The shorter of two limits; 0 is none. */
export function shortestLimit(one: number, other: number): number {
  return one === 0 || other === 0 ? Math.max(one, other) : Math.min(one, other);
}

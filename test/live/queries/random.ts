/** Other numbers than those of each run: `PROPERTY_SEED`. */
const SEED = Number(process.env.PROPERTY_SEED ?? 0);

/** The same numbers in each run with the same `PROPERTY_SEED`. */
export function makeRandom(seed: number): (below: number) => number {
  let state = seed + SEED;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >> 8) % below;
  };
}

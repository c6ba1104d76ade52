import { editDistance } from "../../../engine/edit-distance.ts";

const SHORTEST = 2;
const LONGEST = 3;
const MOST_RANKED = 50;
/** To compare a name with all of more than these takes too long for a refusal. */
const MOST_KNOWN = 500;

export type Nearness = {
  /** From 0 to 1: how much alike they have to be. */
  readonly least: number;
  /** Whether the caller may be told of it. */
  readonly mayName: (known: string) => boolean;
};

/**
 * The known name that is most like this one, as PostgREST's library for it (fuzzyset) judges: of names that share pieces
 * of three letters, or else of two, the one that differs in the fewest.
 */
export function nearest(name: string, known: readonly string[], { least, mayName }: Nearness): string | null {
  if (known.length > MOST_KNOWN) return null;
  const wanted = name.toLowerCase();
  const same = known.find((candidate) => candidate.toLowerCase() === wanted && mayName(candidate));
  if (same !== undefined) return same;
  for (let size = LONGEST; size >= SHORTEST; size--) {
    const pieces = countPieces(wanted, size);
    const best = known
      .map((candidate) => ({ candidate, shared: likeness(pieces, countPieces(candidate.toLowerCase(), size)) }))
      .filter(({ shared }) => shared > 0)
      .sort((a, b) => b.shared - a.shared)
      .slice(0, MOST_RANKED)
      .map(({ candidate }) => ({ candidate, score: score(wanted, candidate.toLowerCase()) }))
      .sort((a, b) => b.score - a.score)
      .find((found) => found.score >= least && mayName(found.candidate));
    if (best) return best.candidate;
  }
  return null;
}

function countPieces(text: string, size: number): Map<string, number> {
  const enclosed = `-${text.replace(/[^\p{L}\p{N} ,]/gu, "")}-`;
  const counts = new Map<string, number>();
  for (let at = 0; at + size <= enclosed.length; at++) {
    const piece = enclosed.slice(at, at + size);
    counts.set(piece, (counts.get(piece) ?? 0) + 1);
  }
  return counts;
}

/** The cosine of the angle between two counts of pieces. */
function likeness(a: Map<string, number>, b: Map<string, number>): number {
  let product = 0;
  for (const [piece, count] of a) product += count * (b.get(piece) ?? 0);
  return product / (length(a) * length(b));
}

function length(counts: Map<string, number>): number {
  return Math.sqrt([...counts.values()].reduce((sum, count) => sum + count * count, 0));
}

function score(a: string, b: string): number {
  return 1 - editDistance(a, b, { swaps: false }) / Math.max(a.length, b.length);
}

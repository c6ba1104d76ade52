/** Divides work of which the longest pieces come first: each piece goes where least is to be done. */
export function divide<Piece>(pieces: readonly Piece[], secondsOf: (piece: Piece) => number, count: number): Piece[][] {
  const shards = Array.from({ length: count }, () => ({ seconds: 0, pieces: [] as Piece[] }));
  for (const piece of pieces) {
    const least = shards.reduce((a, b) => (b.seconds < a.seconds ? b : a));
    least.pieces.push(piece);
    // A piece without a duration counts a little, or one shard would get all of them.
    least.seconds += Math.max(0.1, secondsOf(piece));
  }
  return shards.map(({ pieces }) => pieces);
}

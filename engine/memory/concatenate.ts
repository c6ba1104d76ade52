import type { Stepwise } from "../concurrency/stepwise.ts";

/** One Buffer of all pieces, which are given up for it. */
export function* concatenate(pieces: readonly Buffer[], bytes: number): Stepwise<Buffer> {
  const whole = Buffer.allocUnsafeSlow(bytes);
  let at = 0;
  for (const piece of pieces) {
    at += piece.copy(whole, at);
    freeMemory(piece);
    yield;
  }
  return whole;
}

/**
 * At once, and not when V8 next looks for what nobody holds: it does so when something new is made, which at the end of a flood
 * is not soon. Nobody may read the bytes afterwards.
 */
function freeMemory({ buffer, length }: Buffer): void {
  // Small ones lie within a larger piece of memory, which others lie within too.
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);
}

import { freeMemory } from "./free-memory.ts";
import type { Stepwise } from "./stepwise.ts";

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

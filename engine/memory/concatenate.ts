import type { Stepwise } from "../concurrency/stepwise.ts";

/** Joins the pieces into one Buffer and releases their memory. */
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
 * Releases the memory at once: V8 collects garbage only on allocation, and none follows the end of a flood. The bytes
 * must not be read afterwards.
 */
function freeMemory({ buffer, length }: Buffer): void {
  // Small Buffers are slices of a shared pool.
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);
}

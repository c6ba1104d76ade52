/**
 * At once, and not when V8 next looks for what nobody holds: it does so when something new is made, which at the end of a flood
 * is not soon. Nobody may read the bytes afterwards.
 */
export function freeMemory({ buffer, length }: Buffer): void {
  // Small ones lie within a larger piece of memory, which others lie within too.
  if (buffer instanceof ArrayBuffer && buffer.byteLength === length) buffer.transfer(0);
}

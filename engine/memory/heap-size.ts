/** V8's memory per value, measured with Node 24, rounded up. */
const STRING_BYTES = 24;
const CHARACTER_BYTES = 2;
const NUMBER_BYTES = 16;
const ARRAY_BYTES = 40;
const OBJECT_BYTES = 64;
const SLOT_BYTES = 8;
/** Including its share of the object's hidden class. */
const PROPERTY_BYTES = 48;

/**
 * Estimates the heap size of a value from `JSON.parse`: more than twenty times the length of its text for a list of
 * empty objects. Uses its own stack, since values may be nested deeper than the call stack allows.
 */
export function heapSize(value: unknown): number {
  const waiting: unknown[] = [value];
  let bytes = 0;
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (typeof next === "string") bytes += STRING_BYTES + CHARACTER_BYTES * next.length;
    else if (typeof next === "number") bytes += NUMBER_BYTES;
    else if (Array.isArray(next)) {
      bytes += ARRAY_BYTES + SLOT_BYTES * next.length;
      for (const member of next) waiting.push(member);
    } else if (typeof next === "object" && next !== null) {
      bytes += OBJECT_BYTES;
      for (const [name, member] of Object.entries(next)) {
        bytes += PROPERTY_BYTES + CHARACTER_BYTES * name.length;
        waiting.push(member);
      }
    }
  }
  return bytes;
}

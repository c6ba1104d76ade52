import { DEEPEST, isDeeperThan, type Message } from "./protocol.ts";
import { Refusal } from "./refusal.ts";

/** As many as are parsed in a moment. */
export const MOST_VALUES = 100_000;
/**
 * In bytes, of messages that make the service keep something for as long as the channel is open: 100 channels of one socket are not
 * to fill the memory, and anybody may join.
 */
const MOST_BYTES: ReadonlyMap<string, number> = new Map([
  ["phx_join", 64 * 2 ** 10],
  ["access_token", 64 * 2 ** 10],
  ["presence", 256 * 2 ** 10],
]);
const DEEPEST_KEPT = 100;

/** Null: a message of that kind may be so long. */
export function refuseLength(event: string, bytes: number): Refusal | null {
  const most = MOST_BYTES.get(event) ?? Number.POSITIVE_INFINITY;
  if (bytes <= most) return null;
  return new Refusal("PayloadTooLarge", `A message of the kind ${event} has at most ${most} bytes`);
}

/** Null: it can be kept, or passed on. */
export function refuseDepth({ event, payload }: Message): Refusal | null {
  return isDeeperThan(deepest(event), payload) ? tooDeep(event) : null;
}

export function tooDeep(event: string): Refusal {
  return new Refusal("PayloadTooDeep", `A message of the kind ${event} has at most ${deepest(event)} levels`);
}

export function tooManyValues(event: string): Refusal {
  return new Refusal("PayloadTooLarge", `A message of the kind ${event} has at most ${MOST_VALUES} values`);
}

function deepest(event: string): number {
  return MOST_BYTES.has(event) ? DEEPEST_KEPT : DEEPEST;
}

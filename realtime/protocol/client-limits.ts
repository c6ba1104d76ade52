import type { Config } from "../../engine/config/config.ts";
import type { ByteQuota, Reservation, Shortage } from "../../engine/memory/byte-quota.ts";
import { heapSize } from "../../engine/memory/heap-size.ts";
import { ChannelError } from "./channel-error.ts";
import type { BindingRequest, JoinRequest } from "./join-request.ts";
import { type ClientMessage, isDeeperThan, MAX_MESSAGE_DEPTH } from "./messages.ts";

/** So many seconds' worth may come at once. */
const BURST_SECONDS = 5;

/** As many as are parsed in a moment. */
export const MAX_MESSAGE_VALUES = 100_000;
/**
 * In bytes, of messages that make the service keep something for as long as the channel is open: 100 channels of one socket are not
 * to fill the memory, and anybody may join.
 */
const MAX_BYTES_BY_EVENT: ReadonlyMap<string, number> = new Map([
  ["phx_join", 64 * 2 ** 10],
  ["access_token", 64 * 2 ** 10],
  ["presence", 256 * 2 ** 10],
]);
const MAX_RETAINED_DEPTH = 100;

/** A channel that asks for nothing. */
const CHANNEL_BYTES = 2_048;
/** What is made of a binding, and of each condition and each value of its filter, besides what the client wrote. */
const BINDING_BYTES = 512;
const FILTER_PART_BYTES = 512;
const PRESENCE_BYTES = 512;
/** The caller that a token stands for has its claims as a text and as values. */
const CLAIMS_MEMORY_FACTOR = 3;

/** What one socket may do; 0 is no limit. */
export type ClientLimits = {
  readonly channels: number;
  /** Changes that one channel asks for. */
  readonly bindings: number;
  readonly joinsPerSecond: number;
  readonly messagesPerSecond: number;
  readonly bytesPerSecond: number;
  readonly presencesPerSecond: number;
};

export function readClientLimits(config: Config): ClientLimits {
  return {
    channels: config.realtimeMaxChannels,
    bindings: config.realtimeMaxBindings,
    joinsPerSecond: config.realtimeMaxJoins,
    messagesPerSecond: config.realtimeMaxMessages,
    bytesPerSecond: config.realtimeMaxBytes,
    presencesPerSecond: config.realtimeMaxPresences,
  };
}

/** What comes to an amount a second over some seconds, and how much too much that is; 0 is no limit. */
export class RateLimiter {
  readonly #perSecond: number;
  #taken = 0;
  #at = performance.now();

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  /** In how many milliseconds this would not have been too much; 0: it is not. */
  take(amount: number): number {
    if (this.#perSecond === 0) return 0;
    const now = performance.now();
    const max = this.#perSecond * BURST_SECONDS;
    const left = Math.max(0, this.#taken - ((now - this.#at) / 1000) * this.#perSecond);
    // Whoever does not stop does not wait for ever.
    this.#taken = Math.min(left + amount, 2 * Math.max(max, amount));
    this.#at = now;
    // What is larger than the burst by itself may come when nothing else did.
    return left === 0 ? 0 : (Math.max(0, this.#taken - max) / this.#perSecond) * 1000;
  }
}

/** Null: a message of that kind may be so long. */
export function checkLength(event: string, bytes: number): ChannelError | null {
  const max = MAX_BYTES_BY_EVENT.get(event) ?? Number.POSITIVE_INFINITY;
  if (bytes <= max) return null;
  return new ChannelError("PayloadTooLarge", `A message of the kind ${event} has at most ${max} bytes`);
}

/** Null: it can be kept, or passed on. */
export function checkDepth({ event, payload }: ClientMessage): ChannelError | null {
  return isDeeperThan(maxDepth(event), payload) ? tooDeep(event) : null;
}

export function tooDeep(event: string): ChannelError {
  return new ChannelError("PayloadTooDeep", `A message of the kind ${event} has at most ${maxDepth(event)} levels`);
}

export function tooManyValues(event: string): ChannelError {
  return new ChannelError("PayloadTooLarge", `A message of the kind ${event} has at most ${MAX_MESSAGE_VALUES} values`);
}

function maxDepth(event: string): number {
  return MAX_BYTES_BY_EVENT.has(event) ? MAX_RETAINED_DEPTH : MAX_MESSAGE_DEPTH;
}

/** About how many bytes a channel takes that was joined with this. */
export function estimateJoinBytes({ topic, joinRef, request }: RetainedJoin, token: string | null): number {
  const { bindings, presence, resume } = request;
  const parts = bindings.reduce(
    (sum, { filter }) => sum + BINDING_BYTES + FILTER_PART_BYTES * countFilterParts(filter),
    0,
  );
  return CHANNEL_BYTES + heapSize([topic, joinRef, bindings, presence, resume]) + parts + estimateTokenBytes(token);
}

/** What one presence takes, wherever it is known. */
export function estimatePresenceBytes(key: string, payload: object): number {
  return PRESENCE_BYTES + heapSize([key, payload]);
}

type RetainedJoin = { readonly topic: string; readonly joinRef: string | null; readonly request: JoinRequest };

function estimateTokenBytes(token: string | null): number {
  return token === null ? 0 : heapSize(token) + CLAIMS_MEMORY_FACTOR * token.length;
}

/** Conditions and values are separated by commas. */
function countFilterParts(filter: BindingRequest["filter"]): number {
  return typeof filter === "string" ? filter.split(",").length : 0;
}

/** Refuses what there is no room for by throwing; then less is held, or as much as before. */
export function reserveMemory(reservation: Reservation, bytes: number, quota: ByteQuota): void {
  const shortage = reservation.resize(bytes);
  if (shortage) throw memoryLimitReached(shortage, quota);
}

function memoryLimitReached(shortage: Shortage, { limit }: ByteQuota): ChannelError {
  const text =
    shortage === "own"
      ? `One connection can keep about ${limit} bytes: leave other channels first, or ask for less`
      : "The server keeps too much for its clients: try again later";
  return new ChannelError("MemoryLimitReached", text);
}

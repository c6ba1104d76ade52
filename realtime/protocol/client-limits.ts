import type { Config } from "#config";
import { type ByteQuota, heapSize, type Reservation, type Shortage } from "#runtime";
import {
  type BindingRequest,
  ChannelError,
  type ClientMessage,
  isDeeperThan,
  type JoinRequest,
  MAX_MESSAGE_DEPTH,
} from "./messages.ts";

/** The number of seconds whose amount a burst may use. */
const BURST_SECONDS = 5;

/** The limit of values in a message, which is parsed within milliseconds. */
export const MAX_MESSAGE_VALUES = 100_000;
/**
 * The maximum size of messages whose content is kept while the channel is open: anonymous clients may join, and 100 channels of one
 * socket must not fill the memory.
 */
const MAX_BYTES_BY_EVENT: ReadonlyMap<string, number> = new Map([
  ["phx_join", 64 * 2 ** 10],
  ["access_token", 64 * 2 ** 10],
  ["presence", 256 * 2 ** 10],
]);
const MAX_RETAINED_DEPTH = 100;

/** The estimated memory of a channel without bindings. */
const CHANNEL_BYTES = 2_048;
/** The estimated memory of a binding, and of each condition and value of its filter, in addition to the text. */
const BINDING_BYTES = 512;
const FILTER_PART_BYTES = 512;
const PRESENCE_BYTES = 512;
/** Claims are kept as text and as values. */
const CLAIMS_MEMORY_FACTOR = 3;

/** The limits of one socket; 0 stands for no limit. */
export type ClientLimits = {
  readonly channels: number;
  /** The limit of bindings in one channel. */
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

/** Limits an amount per second, averaged over some seconds; 0 stands for no limit. */
export class RateLimiter {
  readonly #perSecond: number;
  #taken = 0;
  #at = performance.now();

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  /** Returns the milliseconds to wait until the amount is within the limit; 0 if it is. */
  take(amount: number): number {
    if (this.#perSecond === 0) return 0;
    const now = performance.now();
    const max = this.#perSecond * BURST_SECONDS;
    const left = Math.max(0, this.#taken - ((now - this.#at) / 1000) * this.#perSecond);
    // The wait of a client that does not stop sending is bounded.
    this.#taken = Math.min(left + amount, 2 * Math.max(max, amount));
    this.#at = now;
    // An amount above the burst is accepted when nothing was used before it.
    return left === 0 ? 0 : (Math.max(0, this.#taken - max) / this.#perSecond) * 1000;
  }
}

/** Returns the error of a message that is too long, or null. */
export function checkLength(event: string, bytes: number): ChannelError | null {
  const max = MAX_BYTES_BY_EVENT.get(event) ?? Number.POSITIVE_INFINITY;
  if (bytes <= max) return null;
  return new ChannelError("PayloadTooLarge", `A ${event} message may have at most ${max} bytes`);
}

/** Returns the error of a message that is too deep, or null. */
export function checkDepth({ event, payload }: ClientMessage): ChannelError | null {
  return isDeeperThan(maxDepth(event), payload) ? tooDeep(event) : null;
}

export function tooDeep(event: string): ChannelError {
  return new ChannelError("PayloadTooDeep", `A ${event} message may have at most ${maxDepth(event)} levels`);
}

export function tooManyValues(event: string): ChannelError {
  return new ChannelError("PayloadTooLarge", `A ${event} message may have at most ${MAX_MESSAGE_VALUES} values`);
}

function maxDepth(event: string): number {
  return MAX_BYTES_BY_EVENT.has(event) ? MAX_RETAINED_DEPTH : MAX_MESSAGE_DEPTH;
}

/** Estimates the memory that a joined channel takes. */
export function estimateJoinBytes({ topic, joinRef, request }: RetainedJoin, token: string | null): number {
  const { bindings, presence, resume } = request;
  const parts = bindings.reduce(
    (sum, { filter }) => sum + BINDING_BYTES + FILTER_PART_BYTES * countFilterParts(filter),
    0,
  );
  return CHANNEL_BYTES + heapSize([topic, joinRef, bindings, presence, resume]) + parts + estimateTokenBytes(token);
}

/** Estimates the memory that one presence takes at each gateway. */
export function estimatePresenceBytes(key: string, payload: object): number {
  return PRESENCE_BYTES + heapSize([key, payload]);
}

type RetainedJoin = { readonly topic: string; readonly joinRef: string | null; readonly request: JoinRequest };

function estimateTokenBytes(token: string | null): number {
  return token === null ? 0 : heapSize(token) + CLAIMS_MEMORY_FACTOR * token.length;
}

/** Counts conditions and values, which are separated by commas. */
function countFilterParts(filter: BindingRequest["filter"]): number {
  return typeof filter === "string" ? filter.split(",").length : 0;
}

/** Reserves memory. Throws if the quota is exceeded; the reservation is then unchanged or smaller. */
export function reserveMemory(reservation: Reservation, bytes: number, quota: ByteQuota): void {
  const shortage = reservation.resize(bytes);
  if (shortage) throw memoryLimitReached(shortage, quota);
}

function memoryLimitReached(shortage: Shortage, { limit }: ByteQuota): ChannelError {
  const text =
    shortage === "own"
      ? `A connection can use about ${limit} bytes: leave other channels first, or subscribe to less`
      : "The server is short of memory: try again later";
  return new ChannelError("MemoryLimitReached", text);
}

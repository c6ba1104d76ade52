import type { ByteQuota, Reservation, Shortage } from "../engine/memory/byte-quota.ts";
import { heapSize } from "../engine/memory/heap-size.ts";
import type { BindingRequest, JoinRequest } from "./join-request.ts";
import { Refusal } from "./refusal.ts";

/** A channel that asks for nothing. */
const CHANNEL_BYTES = 2_048;
/** What is made of a binding, and of each condition and each value of its filter, besides what the client wrote. */
const BINDING_BYTES = 512;
const FILTER_PART_BYTES = 512;
const PRESENCE_BYTES = 512;
/** The caller that a token stands for has its claims as a text and as values. */
const CLAIMS_TIMES = 3;

/** About how many bytes a channel takes that was joined with this. */
export function sizeOfJoin({ topic, joinRef, request }: Joined, token: string | null): number {
  const { bindings, presence, resume } = request;
  const parts = bindings.reduce((sum, { filter }) => sum + BINDING_BYTES + FILTER_PART_BYTES * partsOf(filter), 0);
  return CHANNEL_BYTES + heapSize([topic, joinRef, bindings, presence, resume]) + parts + sizeOfToken(token);
}

/** What one presence takes, wherever it is known. */
export function sizeOfPresence(key: string, payload: object): number {
  return PRESENCE_BYTES + heapSize([key, payload]);
}

type Joined = { readonly topic: string; readonly joinRef: string | null; readonly request: JoinRequest };

function sizeOfToken(token: string | null): number {
  return token === null ? 0 : heapSize(token) + CLAIMS_TIMES * token.length;
}

/** Conditions and values are separated by commas. */
function partsOf(filter: BindingRequest["filter"]): number {
  return typeof filter === "string" ? filter.split(",").length : 0;
}

/** Refuses what there is no room for by throwing; then less is held, or as much as before. */
export function retain(reservation: Reservation, bytes: number, quota: ByteQuota): void {
  const shortage = reservation.resize(bytes);
  if (shortage) throw memoryLimitReached(shortage, quota);
}

function memoryLimitReached(shortage: Shortage, { limit }: ByteQuota): Refusal {
  const text =
    shortage === "own"
      ? `One connection can keep about ${limit} bytes: leave other channels first, or ask for less`
      : "The server keeps too much for its clients: try again later";
  return new Refusal("MemoryLimitReached", text);
}

import { toIsoTime } from "./time-codecs.ts";

/** What a trigger tells on channel `graphql` (private.tg__event in db/): which row changed, by its keys as text. */
export type RowEvent = {
  readonly s: string;
  readonly t: string;
  readonly op: string;
  readonly k: Readonly<Record<string, string | null>>;
};

type TableOperation = Pick<RowEvent, "s" | "t" | "op">;
type TopicKey = readonly [column: string, value: string | null];

/** `["public","things","update","id","7"]`: JSON, so that no name and no value can be taken for another. */
export function topicOf({ s, t, op }: TableOperation, key: TopicKey | [] = []): string {
  return JSON.stringify([s, t, op, ...key]);
}

/**
 * For a column of times, which are told in the zone of whoever wrote the row. An event does not say of what type a key is, and
 * a text that reads like a time is itself only: so these have topics of their own.
 */
export function timeTopicOf({ s, t, op }: TableOperation, column: string, time: string): string {
  const utcTime = toIsoTime(time);
  // Infinity is told in one way.
  return JSON.stringify([s, t, op, column, utcTime, ...(utcTime === time ? [] : ["UTC"])]);
}

/** Every topic that an event belongs to: all changes of that kind, and those of each key it names. */
export function topicsOf({ k, ...change }: RowEvent): string[] {
  return [topicOf(change), ...Object.entries(k).flatMap(([column, value]) => topicsOfKey(change, column, value))];
}

function topicsOfKey(change: TableOperation, column: string, value: string | null): string[] {
  const topic = topicOf(change, [column, value]);
  const timeTopic = value === null ? topic : timeTopicOf(change, column, value);
  return timeTopic === topic ? [topic] : [topic, timeTopic];
}

/** What a trigger told; null for anything else, since whoever can connect can notify. */
export function parseRowEvent(payload: string): NumberedEvent | null {
  try {
    const event: unknown = JSON.parse(payload);
    return isRowEvent(event) ? event : null;
  } catch {
    return null;
  }
}

/** Triggers of others need not number their events. */
type NumberedEvent = RowEvent & { readonly n?: unknown };

function isRowEvent(event: unknown): event is NumberedEvent {
  if (typeof event !== "object" || event === null) return false;
  const { s, t, op, k } = event as Record<string, unknown>;
  return [s, t, op].every((part) => typeof part === "string") && typeof k === "object" && k !== null;
}

import { toIsoTime } from "./codecs.ts";

/** The payload of a trigger's NOTIFY on channel `graphql` (content_service.tg__event in db/): operation, table, and keys of the row as text. */
export type RowEvent = {
  readonly s: string;
  readonly t: string;
  readonly op: string;
  readonly k: Readonly<Record<string, string | null>>;
};

type TableOperation = Pick<RowEvent, "s" | "t" | "op">;
type TopicKey = readonly [column: string, value: string | null];

/** `["public","things","update","id","7"]`: JSON, so that topics are unambiguous whatever names and values contain. */
export function topicOf({ s, t, op }: TableOperation, key: TopicKey | [] = []): string {
  return JSON.stringify([s, t, op, ...key]);
}

/**
 * The topic for a timestamptz key, which an event carries in the writer's time zone. An event does not carry the key's type, and a text
 * column may hold text that looks like a time; so times have topics of their own.
 */
export function timeTopicOf({ s, t, op }: TableOperation, column: string, time: string): string {
  const utcTime = toIsoTime(time);
  // Infinity has one spelling only.
  return JSON.stringify([s, t, op, column, utcTime, ...(utcTime === time ? [] : ["UTC"])]);
}

/** All topics of an event: one for the operation, and those of each key. */
export function topicsOf({ k, ...change }: RowEvent): string[] {
  return [topicOf(change), ...Object.entries(k).flatMap(([column, value]) => topicsOfKey(change, column, value))];
}

function topicsOfKey(change: TableOperation, column: string, value: string | null): string[] {
  const topic = topicOf(change, [column, value]);
  const timeTopic = value === null ? topic : timeTopicOf(change, column, value);
  return timeTopic === topic ? [topic] : [topic, timeTopic];
}

/** Null for other payloads: any role that can connect can send notifications. */
export function parseRowEvent(payload: string): NumberedEvent | null {
  try {
    const event: unknown = JSON.parse(payload);
    return isRowEvent(event) ? event : null;
  } catch {
    return null;
  }
}

/** `n` numbers the events of our triggers; other triggers need not send it. */
type NumberedEvent = RowEvent & { readonly n?: unknown };

function isRowEvent(event: unknown): event is NumberedEvent {
  if (typeof event !== "object" || event === null) return false;
  const { s, t, op, k } = event as Record<string, unknown>;
  return [s, t, op].every((part) => typeof part === "string") && typeof k === "object" && k !== null;
}

import { toTime } from "./time.ts";

/** What a trigger tells on channel `graphql` (private.tg__event in db/): which row changed, by its keys as text. */
export type RowEvent = {
  readonly s: string;
  readonly t: string;
  readonly op: string;
  readonly k: Readonly<Record<string, string | null>>;
};

type Change = Pick<RowEvent, "s" | "t" | "op">;
type Key = readonly [column: string, value: string | null];

/** `["public","things","update","id","7"]`: JSON, so that no name and no value can be taken for another. */
export function topicOf({ s, t, op }: Change, key: Key | [] = []): string {
  return JSON.stringify([s, t, op, ...key]);
}

/**
 * For a column of times, which are told in the zone of whoever wrote the row. An event does not say of what type a key is, and
 * a text that reads like a time is itself only: so these have topics of their own.
 */
export function momentTopicOf({ s, t, op }: Change, column: string, time: string): string {
  const inUtc = toTime(time);
  // Infinity is told in one way.
  return JSON.stringify([s, t, op, column, inUtc, ...(inUtc === time ? [] : ["UTC"])]);
}

/** Every topic that an event belongs to: all changes of that kind, and those of each key it names. */
export function topicsOf({ k, ...change }: RowEvent): string[] {
  return [topicOf(change), ...Object.entries(k).flatMap(([column, value]) => topicsOfKey(change, column, value))];
}

function topicsOfKey(change: Change, column: string, value: string | null): string[] {
  const topic = topicOf(change, [column, value]);
  const moment = value === null ? topic : momentTopicOf(change, column, value);
  return moment === topic ? [topic] : [topic, moment];
}

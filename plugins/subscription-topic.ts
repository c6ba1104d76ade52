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

/**
 * `["public","things","update","id","7"]`: JSON, so that no name and no value can be taken for another. A time is told in the
 * zone of whoever wrote the row.
 */
export function topicOf({ s, t, op }: Change, key?: Key): string {
  return JSON.stringify([s, t, op, ...(key ? [key[0], key[1] === null ? null : toTime(key[1])] : [])]);
}

/** Every topic that an event belongs to: all changes of that kind, and those of each key it names. */
export function topicsOf({ k, ...change }: RowEvent): string[] {
  return [topicOf(change), ...Object.entries(k).map((key) => topicOf(change, key))];
}

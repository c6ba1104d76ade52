import { expect, test } from "vitest";
import { timeTopicOf, topicOf, topicsOf } from "../../plugins/row-events.ts";

const change = { s: "public", t: "things", op: "update" };

test("an event has a topic for its operation, and one for each of its keys", () => {
  expect(topicsOf({ ...change, k: { id: "7", owner_id: null } })).toEqual([
    topicOf(change),
    topicOf(change, ["id", "7"]),
    topicOf(change, ["owner_id", null]),
  ]);
});

test("an event has the topic of a time, spelled in any time zone", () => {
  const at = (time: string) => topicsOf({ ...change, k: { at: time } });
  const moment = timeTopicOf(change, "at", "2026-01-01T10:00:00+00:00");
  expect(at("2026-01-01T19:00:00+09:00")).toContain(moment);
  expect(at("2026-01-01T19:00:00+09:00")).toContain(topicOf(change, ["at", "2026-01-01T19:00:00+09:00"]));
  expect(at("2026-01-01T19:00:00+08:00")).not.toContain(moment);
  // A text, not a time.
  expect(at("2026-01-01T10:00:00.000Z")).not.toContain(moment);
  expect(at("infinity")).toContain(timeTopicOf(change, "at", "infinity"));
});

test("different names and values have different topics", () => {
  const topics = [
    topicOf(change),
    topicOf({ ...change, op: "insert" }),
    topicOf({ ...change, t: 'things","update' }),
    topicOf(change, ["id", '7","x']),
    topicOf(change, ["id", "7"]),
    topicOf(change, ["id", null]),
    topicOf(change, ["id", "null"]),
  ];
  expect(new Set(topics).size).toBe(topics.length);
});

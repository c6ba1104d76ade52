import { expect, test } from "vitest";
import { topicOf, topicsOf } from "../../plugins/subscription-topic.ts";

const change = { s: "public", t: "things", op: "update" };

test("a change belongs to all changes of its kind, and to those of each of its keys", () => {
  expect(topicsOf({ ...change, k: { id: "7", owner_id: null } })).toEqual([
    topicOf(change),
    topicOf(change, ["id", "7"]),
    topicOf(change, ["owner_id", null]),
  ]);
});

test("no name and no value is taken for another", () => {
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

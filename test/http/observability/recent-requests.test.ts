import { describe, expect, test } from "vitest";
import {
  MAX_RECENT_REQUESTS,
  type RecentRequest,
  RecentRequests,
  searchRequests,
} from "../../../http/observability/recent-requests.ts";

const request = (changes: Partial<RecentRequest> = {}): RecentRequest => ({
  ...{ at: 1, id: "a1", method: "GET", path: "/rest/v1/films", status: 200, milliseconds: 2, interface: "table" },
  ...changes,
});

test("the last requests are kept, and older ones replaced", () => {
  const recent = new RecentRequests();
  for (let at = 0; at < MAX_RECENT_REQUESTS + 5; at++) recent.add(request({ at }));
  const times = recent.list().map(({ at }) => at);
  expect(times).toHaveLength(MAX_RECENT_REQUESTS);
  expect(Math.min(...times)).toBe(5);
  expect(Math.max(...times)).toBe(MAX_RECENT_REQUESTS + 4);
});

test("a long path is cut", () => {
  const recent = new RecentRequests();
  recent.add(request({ path: `/${"x".repeat(20_000)}` }));
  expect(recent.list()[0]!.path).toHaveLength(300);
});

describe("a search", () => {
  const requests = [
    request({ at: 1, id: "first" }),
    request({ at: 2, id: "second", method: "POST", status: 404, interface: "graphql", path: "/graphql" }),
    request({ at: 3, id: "third", status: 503, milliseconds: 900 }),
  ];
  const all = { words: [], status: null, interface: null, leastMilliseconds: 0, limit: 10 };
  test.each([
    ["all, the newest first", all, ["third", "second", "first"]],
    ["each word, in any case", { ...all, words: ["GET", "FILMS", "third"] }, ["third"]],
    ["a status", { ...all, status: 404 }, ["second"]],
    ["a class of statuses", { ...all, status: 5 }, ["third"]],
    ["an interface", { ...all, interface: "graphql" }, ["second"]],
    ["slow ones", { ...all, leastMilliseconds: 900 }, ["third"]],
    ["the newest of many", { ...all, limit: 1 }, ["third"]],
    ["nothing", { ...all, words: ["absent"] }, []],
  ] as const)("finds %s", (_, search, expected) => {
    expect(searchRequests(requests, search).map(({ id }) => id)).toEqual(expected);
  });
});

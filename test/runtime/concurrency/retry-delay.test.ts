import { expect, test } from "vitest";
import { awaitedRetryDelay, retryDelay } from "../../../runtime/concurrency/retry-delay.ts";

test("the delay before an attempt doubles up to a limit and varies in its upper half", () => {
  expect([1, 2, 3, 4].map((attempt) => retryDelay(attempt, 1))).toEqual([50, 100, 200, 400]);
  expect(retryDelay(50, 1)).toBe(1_000);
  expect(retryDelay(3, 0)).toBe(100);
});

test("the delay is at most a fifth of a second while a request waits", () => {
  expect([1, 2, 3, 4, 50].map((attempt) => awaitedRetryDelay(attempt, 1))).toEqual([50, 100, 200, 200, 200]);
});

test("each caller has a different delay", () => {
  const pauses = Array.from({ length: 100 }, () => retryDelay(3));
  expect(new Set(pauses).size).toBeGreaterThan(1);
  expect(pauses.every((pause) => pause >= 100 && pause <= 200)).toBe(true);
});

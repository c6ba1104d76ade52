import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { RateLimiter } from "../../../realtime/protocol/client-limits.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

test("a burst may use five seconds' amount, and more waits for as long as it exceeds the limit", () => {
  const rate = new RateLimiter(10);
  for (let taken = 0; taken < 50; taken++) expect(rate.take(1)).toBe(0);
  expect(rate.take(1)).toBe(100);
  vi.advanceTimersByTime(99);
  expect(rate.take(0)).toBeCloseTo(1);
  vi.advanceTimersByTime(101);
  expect(rate.take(1)).toBe(0);
});

test("a client that does not stop waits for five seconds at most, and a single large amount is accepted once", () => {
  const rate = new RateLimiter(10);
  for (let taken = 0; taken < 10_000; taken++) rate.take(1);
  expect(rate.take(1)).toBe(5_000);
  expect(new RateLimiter(10).take(1_000)).toBe(0);
});

test("0 is no limit", () => {
  expect(new RateLimiter(0).take(Number.MAX_SAFE_INTEGER)).toBe(0);
});

import { setTimeout as sleep } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { LightAbortSignal, toSignal } from "../../../runtime/concurrency/abort.ts";

const REASON = new Error("nobody waits any more");

test("a listener is called once, with the reason", () => {
  const abort = new LightAbortSignal();
  const listener = vi.fn(() => expect([abort.aborted, abort.reason]).toEqual([true, REASON]));
  abort.addEventListener("abort", listener);
  expect([abort.aborted, abort.reason]).toEqual([false, undefined]);
  abort.abort(REASON);
  abort.abort(new Error("another one"));
  expect(listener).toHaveBeenCalledTimes(1);
  expect(abort.reason).toBe(REASON);
});

test("a removed listener is not called, and others are", () => {
  const abort = new LightAbortSignal();
  const [first, second] = [vi.fn(), vi.fn()];
  abort.addEventListener("abort", first);
  abort.addEventListener("abort", second);
  abort.removeEventListener("abort", first);
  abort.removeEventListener("abort", first);
  abort.abort(REASON);
  expect([first.mock.calls.length, second.mock.calls.length]).toEqual([0, 1]);
});

test("a listener may be removed while all are called", () => {
  const abort = new LightAbortSignal();
  const second = vi.fn();
  const first = vi.fn(() => abort.removeEventListener("abort", first));
  abort.addEventListener("abort", first);
  abort.addEventListener("abort", second);
  abort.abort(REASON);
  expect([first.mock.calls.length, second.mock.calls.length]).toEqual([1, 1]);
});

test("an AbortSignal follows it, before and after the signal was requested", async () => {
  const abort = new LightAbortSignal();
  const sleeping = sleep(600_000, undefined, { signal: toSignal(abort) });
  abort.abort(REASON);
  await expect(sleeping).rejects.toMatchObject({ name: "AbortError", cause: REASON });
  expect(toSignal(abort).reason).toBe(REASON);
});

test("an AbortSignal stays as it is", () => {
  const { signal } = new AbortController();
  expect(toSignal(signal)).toBe(signal);
});

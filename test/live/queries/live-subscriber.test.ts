import { queryObjects } from "node:v8";
import { expect, test } from "vitest";
import { LiveSubscriber } from "../../../live/queries/live-subscriber.ts";

function openSubscriber(): LiveSubscriber {
  const source = { request: "", quotaKey: "", isPrivate: false, run: () => Promise.reject(new Error("not run")) };
  const caller = { kind: "known", role: "anon", claims: {}, claimsText: "{}", expiresAt: null } as const;
  return new LiveSubscriber({ ...source, caller }, () => {});
}

const countPromises = () => queryObjects(Promise, { format: "count" });

test("a client that waits without changes keeps nothing of its earlier waits", async () => {
  const subscriber = openSubscriber();
  expect(await subscriber.next(1)).toBe("idle");
  const before = countPromises();
  for (let wait = 0; wait < 100; wait++) expect(await subscriber.next(1)).toBe("idle");
  expect(countPromises() - before).toBeLessThan(20);
  const kept = Array.from({ length: 100 }, () => Promise.withResolvers());
  expect(countPromises() - before).toBeGreaterThanOrEqual(kept.length);
});

test("a client that waits is woken by an error, and by its own end", async () => {
  const failed = openSubscriber();
  const refused = failed.next(60_000);
  failed.fail(new Error("gone"));
  await expect(refused).rejects.toThrow("gone");
  const closed = openSubscriber();
  const ended = closed.next(60_000);
  closed.close();
  expect(await ended).toBeNull();
});

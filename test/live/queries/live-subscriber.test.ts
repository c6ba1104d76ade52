import { once } from "node:events";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import type { PromiseCounts } from "./idle-waits.ts";
import { openSubscriber } from "./subscriber.ts";

test("a client that waits without changes keeps nothing of its earlier waits", async () => {
  const worker = new Worker(join(import.meta.dirname, "idle-waits.ts"), {
    execArgv: ["--disable-warning=ExperimentalWarning"],
  });
  const counts: PromiseCounts[] = [];
  worker.on("message", (message) => counts.push(message));
  await once(worker, "exit");
  expect(counts[0]!.ofWaits).toBeLessThan(20);
  // They can be counted.
  expect(counts[0]!.ofKept).toBeGreaterThanOrEqual(100);
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

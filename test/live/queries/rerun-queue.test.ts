import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { RerunQueue } from "../../../live/queries/rerun-queue.ts";

const runAll = (queue: RerunQueue, count: number, work: () => Promise<void>) =>
  Promise.all(Array.from({ length: count }, () => queue.run("many", work)));

test("a caller with one query waits for few of the runs of a caller with many", async () => {
  const queue = new RerunQueue(() => 0);
  let runs = 0;
  const run = () => sleep(5).then(() => runs++);
  const many = Array.from({ length: 60 }, () => queue.run("many", run));
  await queue.run("one", () => sleep(1));
  expect(runs).toBeLessThan(30);
  await Promise.all(many);
  expect(runs).toBe(60);
});

test("after a second of runs without an end, each is followed by a pause of three times its length while other statements run", async () => {
  // Eight at a time: seven turns, of which the sixth ends too late.
  const take = async (others: number) => {
    let running = 0;
    const queue = new RerunQueue(() => running + others);
    const startedAt = performance.now();
    await runAll(queue, 56, async () => {
      running++;
      await sleep(200);
      running--;
    });
    return performance.now() - startedAt;
  };
  const [busy, alone] = await Promise.all([take(1), take(0)]);
  expect(busy).toBeGreaterThanOrEqual(7 * 200 + 3 * 200 - 20);
  expect(alone).toBeLessThan(busy);
});

test("a run that fails fails alone", async () => {
  const queue = new RerunQueue(() => 0);
  const failed = queue.run("one", () => Promise.reject(new Error("no")));
  await expect(failed).rejects.toThrow("no");
  expect(await queue.run("one", async () => 1)).toBe(1);
});

import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { Coalescer } from "../../../runtime/concurrency/coalescer.ts";
import { until } from "../../until.ts";

/** Work that is done when it is let go, and counts how often it began. */
function gatedWork() {
  const runs: PromiseWithResolvers<void>[] = [];
  const work = () => {
    const run = Promise.withResolvers<void>();
    runs.push(run);
    return run.promise;
  };
  const begun = async (count: number) => {
    await until(() => runs.length >= count);
    return runs[count - 1]!;
  };
  return { runs, work, begun };
}

describe("coalesced requests", () => {
  test("that arrive together share one run", async () => {
    const { runs, work, begun } = gatedWork();
    const coalescer = new Coalescer(work, 5);
    const requests = [coalescer.request(), coalescer.request(), coalescer.request()];
    (await begun(1)).resolve();
    await Promise.all(requests);
    await sleep(30);
    expect(runs).toHaveLength(1);
    expect(coalescer.isBusy).toBe(false);
  });

  test("that arrive during a run share one more, which starts after them", async () => {
    const { runs, work, begun } = gatedWork();
    const coalescer = new Coalescer(work, 1);
    const first = coalescer.request();
    const running = await begun(1);
    let answered = false;
    const later = Promise.all([coalescer.request(), coalescer.request()]).then(() => {
      answered = true;
    });
    running.resolve();
    await first;
    expect(answered).toBe(false);
    (await begun(2)).resolve();
    await later;
    await sleep(30);
    expect(runs).toHaveLength(2);
  });

  test("that never end are followed by longer and longer pauses, up to four times a run", async () => {
    let lastEnd = 0;
    const pauses: number[] = [];
    const coalescer: Coalescer = new Coalescer(async () => {
      if (lastEnd > 0) pauses.push(performance.now() - lastEnd);
      await sleep(20);
      lastEnd = performance.now();
      void coalescer.request(0).catch(() => {});
    }, 0);
    void coalescer.request(0).catch(() => {});
    await until(() => pauses.filter((pause) => pause > 3.5 * 19).length > 2);
    expect(pauses[0]).toBeLessThan(pauses.at(-1)!);
    await coalescer.close();
  });

  test("that never end are followed by pauses of no more than the maximum, unless a run takes longer", async () => {
    let lastEnd = 0;
    const pauses: number[] = [];
    const work = async () => {
      if (lastEnd > 0) pauses.push(performance.now() - lastEnd);
      await sleep(100);
      lastEnd = performance.now();
      void coalescer.request(0).catch(() => {});
    };
    const coalescer: Coalescer = new Coalescer(work, 0, { maxPauseMs: 20 });
    void coalescer.request(0).catch(() => {});
    await until(() => pauses.length > 4);
    await coalescer.close();
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(99 - 10);
    expect(Math.min(...pauses.slice(2))).toBeLessThan(2 * 100);
  });

  test("are rejected by a failed run, which is retried", async () => {
    const { work, begun } = gatedWork();
    const coalescer = new Coalescer(work, 1);
    const request = coalescer.request();
    (await begun(1)).reject(new Error("away"));
    await expect(request).rejects.toThrow("away");
    expect(coalescer.isBusy).toBe(true);
    (await begun(2)).reject(new Error("still away"));
    (await begun(3)).resolve();
    await sleep(100);
    expect(coalescer.isBusy).toBe(false);
  });

  test("wait between two runs as long as the last one took", async () => {
    const { work, begun } = gatedWork();
    const coalescer = new Coalescer(work, 1);
    coalescer.request();
    const running = await begun(1);
    await sleep(100);
    coalescer.request();
    running.resolve();
    const endedAt = performance.now();
    (await begun(2)).resolve();
    expect(performance.now() - endedAt).toBeGreaterThan(80);
  });

  test("do not wait longer because one run was slow", async () => {
    const { work, begun } = gatedWork();
    const coalescer = new Coalescer(work, 1);
    coalescer.request();
    (await begun(1)).resolve();
    await until(() => !coalescer.isBusy);
    coalescer.request();
    const slow = await begun(2);
    await sleep(2_000);
    coalescer.request();
    slow.resolve();
    const endedAt = performance.now();
    (await begun(3)).resolve();
    expect(performance.now() - endedAt).toBeLessThan(1_000);
  });

  test("are late from the first one that no run has done", async () => {
    const { work, begun } = gatedWork();
    const coalescer = new Coalescer(work, 1);
    expect(coalescer.lateMs).toBe(0);
    const requestedAt = performance.now();
    coalescer.request();
    const first = await begun(1);
    await sleep(50);
    coalescer.request();
    expect(coalescer.lateMs).toBeGreaterThan(49);
    first.resolve();
    const second = await begun(2);
    expect(coalescer.lateMs).toBeLessThan(performance.now() - requestedAt - 49);
    second.resolve();
    await until(() => coalescer.lateMs === 0);
  });

  test("wait for no pause while their runs are within the allowance", async () => {
    const { work, begun } = gatedWork();
    const coalescer = new Coalescer(work, 1, { allowanceMs: 450 });
    const pauseAfter = async (run: number) => {
      const running = await begun(run);
      await sleep(300);
      coalescer.request();
      running.resolve();
      const endedAt = performance.now();
      await begun(run + 1);
      return performance.now() - endedAt;
    };
    coalescer.request();
    expect(await pauseAfter(1)).toBeLessThan(await pauseAfter(2));
    (await begun(3)).resolve();
    await coalescer.close();
  });

  test("start no run after closing, which waits for the current run", async () => {
    const { runs, work, begun } = gatedWork();
    const coalescer = new Coalescer(work, 1);
    coalescer.request();
    const running = await begun(1);
    const waiting = coalescer.request();
    const closing = coalescer.close();
    running.resolve();
    await closing;
    await expect(waiting).rejects.toThrow();
    await expect(coalescer.request()).rejects.toThrow();
    await sleep(30);
    expect(runs).toHaveLength(1);
  });
});

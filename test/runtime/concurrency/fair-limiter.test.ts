import { describe, expect, test } from "vitest";
import { FairLimiter, type WorkShare } from "../../../runtime/concurrency/fair-limiter.ts";

function makeLimited({ concurrency = 1, maxWaiting = 100, maxWaitingOfKey = 100 } = {}) {
  const limiter = new FairLimiter({
    concurrency,
    maxWaiting,
    maxWaitingOfKey,
    refusalOfAll: () => new Error("full"),
    refusalOfKey: () => new Error("share used up"),
  });
  const order: string[] = [];
  const gate = Promise.withResolvers<void>();
  const run = (name: string, ...keys: (string | WorkShare)[]) =>
    limiter.run(
      keys.map((key) => (typeof key === "string" ? { key, turns: 1 } : key)),
      async () => {
        await gate.promise;
        order.push(name);
      },
    );
  return { order, run, open: () => gate.resolve() };
}

describe("a fair limiter", () => {
  test("serves others before the second work of an address that has sent much", async () => {
    const { order, run, open } = makeLimited();
    const all = [run("running", "flood")];
    for (let index = 0; index < 4; index++) all.push(run(`flood ${index}`, "flood", `account ${index}`));
    all.push(run("other", "elsewhere", "account of other"));
    open();
    await Promise.all(all);
    expect(order).toEqual(["running", "other", "flood 0", "flood 1", "flood 2", "flood 3"]);
  });

  test("serves others before the second work for one account, whatever addresses it comes from", async () => {
    const { order, run, open } = makeLimited();
    const all = [run("running", "address", "victim")];
    for (let index = 0; index < 3; index++) all.push(run(`flood ${index}`, `address ${index}`, "victim"));
    all.push(run("other", "elsewhere", "account of other"));
    open();
    await Promise.all(all);
    expect(order).toEqual(["running", "other", "flood 0", "flood 1", "flood 2"]);
  });

  test("counts a key with a quarter of a turn four times before others are served first", async () => {
    const { order, run, open } = makeLimited();
    const site = { key: "site", turns: 0.25 };
    const all = [run("running", "x")];
    for (let index = 0; index < 6; index++) all.push(run(`site ${index}`, `network ${index}`, site));
    all.push(run("other", "elsewhere"));
    open();
    await Promise.all(all);
    expect(order).toEqual(["running", "site 0", "other", "site 1", "site 2", "site 3", "site 4", "site 5"]);
  });

  test("refuses the last in order when it is full, and not who comes for the first time", async () => {
    const { order, run, open } = makeLimited({ maxWaiting: 2 });
    const all = [run("running", "flood"), run("flood 0", "flood"), run("flood 1", "flood"), run("other", "elsewhere")];
    await expect(all[2]).rejects.toThrow("full");
    await expect(run("flood 2", "flood")).rejects.toThrow("full");
    open();
    await Promise.all([all[0], all[1], all[3]]);
    expect(order).toEqual(["running", "other", "flood 0"]);
  });

  test("refuses early what exceeds the share of one key", async () => {
    const { run, open } = makeLimited({ maxWaiting: 10, maxWaitingOfKey: 1 });
    const all = [run("running", "flood"), run("flood 0", "flood"), run("other", "elsewhere")];
    await expect(run("flood 1", "flood")).rejects.toThrow("share used up");
    open();
    await Promise.all(all);
    await expect(run("later", "flood")).resolves.toBeUndefined();
  });

  test("goes on after work has failed, and runs as much at a time as it is told", async () => {
    const limiter = new FairLimiter({
      concurrency: 2,
      maxWaiting: 10,
      maxWaitingOfKey: 10,
      refusalOfAll: () => new Error("full"),
      refusalOfKey: () => new Error("share used up"),
    });
    let running = 0;
    let most = 0;
    const work = async () => {
      most = Math.max(most, ++running);
      await new Promise(setImmediate);
      running--;
      throw new Error("failed");
    };
    const settled = await Promise.allSettled(
      Array.from({ length: 5 }, (_, index) => limiter.run([{ key: String(index), turns: 1 }], work)),
    );
    expect(settled.every(({ status }) => status === "rejected")).toBe(true);
    expect(most).toBe(2);
  });
});

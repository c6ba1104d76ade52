import { describe, expect, test } from "vitest";
import { FairLimiter } from "../../../runtime/concurrency/fair-limiter.ts";
import type { WorkShare } from "../../../runtime/concurrency/fair-queue.ts";

function makeLimited({
  concurrency = 1,
  reserved = 0,
  maxWaiting = 100,
  maxWaitingPreferred = 100,
  maxWaitingOfKey = 100,
} = {}) {
  const limiter = new FairLimiter({
    concurrency,
    reserved,
    maxWaiting,
    maxWaitingPreferred,
    maxWaitingOfKey,
    refusalOfAll: () => new Error("full"),
    refusalOfKey: () => new Error("share used up"),
  });
  const order: string[] = [];
  const gate = Promise.withResolvers<void>();
  const start = (isPreferred: boolean, name: string, ...keys: (string | WorkShare)[]) =>
    limiter.run(
      keys.map((key) => (typeof key === "string" ? { key, turns: 1 } : key)),
      async () => {
        await gate.promise;
        order.push(name);
      },
      { isPreferred },
    );
  return {
    order,
    run: (name: string, ...keys: (string | WorkShare)[]) => start(false, name, ...keys),
    runPreferred: (name: string, ...keys: (string | WorkShare)[]) => start(true, name, ...keys),
    open: () => gate.resolve(),
  };
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

  test("serves preferred work first, in turns of its keys, and other work after four of its turns", async () => {
    const { order, run, runPreferred, open } = makeLimited();
    const all = [run("running", "x")];
    for (let index = 0; index < 3; index++) all.push(run(`other ${index}`, `address ${index}`));
    for (let index = 0; index < 4; index++) all.push(runPreferred(`known ${index}`, "office"));
    all.push(runPreferred("home", "home"), runPreferred("last", "office"));
    open();
    await Promise.all(all);
    const afterFour = ["known 3", "last", "other 1", "other 2"];
    expect(order).toEqual(["running", "known 0", "home", "known 1", "known 2", "other 0", ...afterFour]);
  });

  test("has room for preferred work when no other work finds any, and the other way round", async () => {
    const { run, runPreferred, open } = makeLimited({ maxWaiting: 1, maxWaitingPreferred: 1 });
    const all = [run("running", "x"), run("other", "a"), runPreferred("known", "b")];
    await expect(run("other 2", "c")).rejects.toThrow("full");
    await expect(runPreferred("known 2", "d")).rejects.toThrow("full");
    open();
    await Promise.all(all);
    await expect(run("later", "c")).resolves.toBeUndefined();
  });

  test("starts preferred work at once where a slot is reserved for it", async () => {
    const { order, run, runPreferred, open } = makeLimited({ concurrency: 2, reserved: 1, maxWaiting: 1 });
    const all = [run("other", "a"), run("waiting", "b"), runPreferred("known", "c"), runPreferred("known 2", "d")];
    await expect(run("refused", "e")).rejects.toThrow("full");
    open();
    await Promise.all(all);
    expect(order).toEqual(["other", "known", "known 2", "waiting"]);
    await expect(Promise.all([run("later", "a"), run("last", "b")])).resolves.toHaveLength(2);
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

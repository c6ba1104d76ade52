import { AsyncLocalStorage } from "node:async_hooks";
import { expect, test, vi } from "vitest";
import { restartWorkOfUncaught, Supervisor } from "../../../runtime/concurrency/supervisor.ts";
import { until } from "../../until.ts";

function supervised() {
  const log = { info: vi.fn(), warn: vi.fn() };
  return { log, supervisor: new Supervisor({ log }) };
}

const unsettled = () => Promise.withResolvers<unknown>();

test("work that ends or fails is started again, is named meanwhile, counted, and logged once", async () => {
  const { log, supervisor } = supervised();
  const runs = [unsettled(), unsettled(), unsettled()];
  let starts = 0;
  let refusals = 3;
  const stop = vi.fn(async () => {});
  const work = await supervisor.keep("reader", async () => {
    if (starts > 0 && refusals-- > 0) throw new Error("refused");
    return { ended: runs[starts++]!.promise, stop };
  });
  expect(supervisor.stopped()).toEqual([]);
  runs[0]!.reject(new Error("lost"));
  await until(() => supervisor.stopped().includes("reader"));
  await until(() => supervisor.stopped().length === 0);
  expect(supervisor.restarts()).toEqual({ reader: 1 });
  runs[1]!.resolve(undefined);
  await until(() => supervisor.restarts().reader === 2);
  expect(log.warn).toHaveBeenCalledTimes(1);
  expect(stop).toHaveBeenCalledTimes(2);
  await work.close();
  expect(stop).toHaveBeenCalledTimes(3);
  expect(supervisor.names()).toEqual([]);
  // A counter does not decrease.
  expect(supervisor.restarts()).toEqual({ reader: 2 });
});

test("closed work is not started again, whether it ends before or after", async () => {
  const { supervisor } = supervised();
  const run = unsettled();
  const start = vi.fn(async () => ({ ended: run.promise, stop: async () => run.resolve(undefined) }));
  const work = await supervisor.keep("reader", start);
  await work.close();
  await new Promise(setImmediate);
  expect(start).toHaveBeenCalledTimes(1);
  await expect(supervisor.keep("other", () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(supervisor.names()).toEqual([]);
});

test("repeated work goes on after a failure, and after a run that makes no progress", async () => {
  const { supervisor } = supervised();
  const runs: (() => Promise<undefined>)[] = [
    async () => undefined,
    () => Promise.reject(new Error("locked")),
    // Hangs for ever.
    () => new Promise(() => {}),
  ];
  let done = 0;
  const states: string[][] = [];
  const work = supervisor.repeat(
    "cleaner",
    async () => {
      states.push([...supervisor.stopped()]);
      const result = await (runs.shift() ?? (async () => undefined))();
      done++;
      return result;
    },
    { pauseMs: 1, timeoutMs: 20 },
  );
  await until(() => done > 3);
  expect(states.slice(0, 5)).toEqual([[], [], ["cleaner"], ["cleaner"], []]);
  expect(supervisor.restarts()).toEqual({ cleaner: 1 });
  await work.close();
});

test("work that takes too long is named until it ends, and is waited for", async () => {
  const { supervisor } = supervised();
  const report = supervisor.report("delivery");
  const run = unsettled();
  const result = report.expect(() => run.promise, 1);
  await until(() => supervisor.stopped().includes("delivery"));
  run.resolve("delivered");
  expect(await result).toBe("delivered");
  expect(supervisor.stopped()).toEqual([]);
  expect(supervisor.restarts()).toEqual({ delivery: 1 });
  await expect(report.expect(() => Promise.reject(new Error("no")), 1_000)).rejects.toThrow("no");
  expect(supervisor.stopped()).toEqual([]);
});

test("repeated work that is requested during a run runs again at once", async () => {
  const { supervisor } = supervised();
  let runs = 0;
  const first = Promise.withResolvers<undefined>();
  const work = supervisor.repeat("cleaner", () => (runs++ === 0 ? first.promise : Promise.resolve(undefined)), {
    pauseMs: 3_600_000,
  });
  work.soon();
  work.soon();
  first.resolve(undefined);
  await until(() => runs === 2);
  work.soon();
  await expect.poll(() => runs === 3).toBe(true);
  await work.close();
});

test("an uncaught error restarts the work that it comes from, and no other", async () => {
  const { log, supervisor } = supervised();
  const contexts: ReturnType<typeof AsyncLocalStorage.snapshot>[] = [];
  const stops: string[] = [];
  const start = (name: string) => async () => {
    const started = contexts.push(AsyncLocalStorage.snapshot());
    return { ended: new Promise(() => {}), stop: async () => void stops.push(`${name} ${started}`) };
  };
  const first = await supervisor.keep("first", start("first"));
  const second = await supervisor.keep("second", start("second"));
  const error = new Error("Release called twice");
  expect(restartWorkOfUncaught(error)).toBe(false);
  expect(contexts[0]!(restartWorkOfUncaught, error)).toBe(true);
  await new Promise(setImmediate);
  expect(supervisor.stopped()).toEqual(["first"]);
  await until(() => supervisor.restarts().first === 1);
  expect(stops).toEqual(["first 1"]);
  expect(log.warn).toHaveBeenCalledWith({ err: error, work: "first" }, expect.stringContaining("uncaught"));
  // An error of work that the previous runner has left comes later: the present runner goes on.
  expect(contexts[0]!(restartWorkOfUncaught, error)).toBe(true);
  await new Promise(setImmediate);
  expect(supervisor.stopped()).toEqual([]);
  expect(supervisor.uncaughtErrors()).toEqual({ first: 2, second: 0 });
  await first.close();
  await second.close();
  expect(contexts[2]!(restartWorkOfUncaught, error)).toBe(true);
  expect(supervisor.names()).toEqual([]);
  expect(supervisor.uncaughtErrors()).toEqual({ first: 3 });
});

test("work that hangs after an uncaught error is done again", async () => {
  const { supervisor } = supervised();
  let runs = 0;
  const work = supervisor.repeat(
    "cleaner",
    async () => {
      if (++runs > 1) return undefined;
      return new Promise(() => setImmediate(() => restartWorkOfUncaught(new Error("lost"))));
    },
    { pauseMs: 100_000 },
  );
  await until(() => supervisor.restarts().cleaner === 1);
  expect(runs).toBe(2);
  await work.close();
});

test("a start that hangs after an uncaught error is begun again, and what it starts later is stopped", async () => {
  const { supervisor } = supervised();
  const late = Promise.withResolvers<void>();
  const stop = vi.fn(async () => {});
  let starts = 0;
  const end = Promise.withResolvers<void>();
  const work = await supervisor.keep("reader", async () => {
    if (++starts === 2) {
      setImmediate(() => restartWorkOfUncaught(new Error("lost")));
      await late.promise;
      return { ended: new Promise(() => {}), stop };
    }
    return { ended: starts === 1 ? end.promise : new Promise(() => {}), stop: async () => {} };
  });
  end.resolve();
  await until(() => starts === 3);
  expect(stop).not.toHaveBeenCalled();
  late.resolve();
  await until(() => stop.mock.calls.length === 1);
  await work.close();
});

test("an uncaught error of work that is awaited rejects it", async () => {
  const { supervisor } = supervised();
  const report = supervisor.report("e-mails");
  const sent = report.guard(() => new Promise(() => setImmediate(() => restartWorkOfUncaught(new Error("lost")))));
  await expect(sent).rejects.toThrow("lost");
  expect(supervisor.stopped()).toEqual(["e-mails"]);
  await until(() => supervisor.stopped().length === 0);
  report.close();
});

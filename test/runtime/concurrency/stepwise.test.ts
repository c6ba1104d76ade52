import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { LightAbortSignal } from "../../../runtime/concurrency/abort.ts";
import { runStepwise } from "../../../runtime/concurrency/event-loop-sharing.ts";
import { runToCompletion, type Stepwise } from "../../../runtime/concurrency/stepwise.ts";

/** Takes a millisecond for each step, and tells of it. */
function* steps(count: number, log: (step: number) => void = () => {}): Stepwise<string> {
  for (let step = 1; step <= count; step++) {
    const end = performance.now() + 1;
    while (performance.now() < end);
    log(step);
    yield;
  }
  return `${count} steps`;
}

function* failing(): Stepwise<never> {
  yield;
  throw new RangeError("too much");
}

describe("a computation in steps", () => {
  test("without steps finishes immediately", () => {
    expect(runStepwise(steps(0))).toBe("0 steps");
  });

  test("with steps finishes later, and the event loop turns meanwhile", async () => {
    const done = runStepwise(steps(50));
    expect(done).toBeInstanceOf(Promise);
    let turns = 0;
    let isDone = false;
    void (done as Promise<string>).then(() => {
      isDone = true;
    });
    while (!isDone) {
      await nextTurn();
      turns++;
    }
    expect(await done).toBe("50 steps");
    expect(turns).toBeGreaterThan(5);
  });

  test("alternates with others: however many there are, one continues in each turn of the event loop", async () => {
    const order: string[] = [];
    const all = ["a", "b", "c"].map((name) => runStepwise(steps(20, () => order.push(name))));
    await nextTurn();
    await nextTurn();
    // Each has made its first step, and in one or two turns no more than one or two have gone on.
    expect(new Set(order.slice(3)).size).toBeLessThanOrEqual(2);
    expect(await Promise.all(all)).toEqual(["20 steps", "20 steps", "20 steps"]);
    expect(order.slice(0, 30).includes("c")).toBe(true);
  });

  test("that fails rejects, and the others continue", async () => {
    const other = runStepwise(steps(20));
    await expect(runStepwise(failing())).rejects.toThrow("too much");
    expect(await other).toBe("20 steps");
  });

  test("is aborted when no caller waits for it any more", async () => {
    const left = new LightAbortSignal();
    let last = 0;
    const done = runStepwise(
      steps(10_000, (step) => {
        last = step;
      }),
      left,
    );
    await nextTurn();
    left.abort(new Error("the client left"));
    await expect(done).rejects.toThrow("the client left");
    expect(last).toBeLessThan(10_000);
  });

  test("can run without a pause", () => {
    expect(runToCompletion(steps(3))).toBe("3 steps");
  });
});

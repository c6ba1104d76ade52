import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { FairWorkQueue } from "../../../runtime/concurrency/event-loop-sharing.ts";

/** Work that ends when it is told to. */
function pieces(turns: FairWorkQueue) {
  const begun: string[] = [];
  const ends = new Map<string, PromiseWithResolvers<string>>();
  const bring = (owner: object, name: string) =>
    turns.run(owner, () => {
      begun.push(name);
      const end = Promise.withResolvers<string>();
      ends.set(name, end);
      return end.promise;
    });
  const end = async (name: string) => {
    ends.get(name)!.resolve(name);
    await turn();
  };
  return { begun, bring, end, fail: (name: string) => ends.get(name)!.reject(new Error(name)) };
}

test("a limited number of pieces runs at a time, and owners take turns, however many pieces others add", async () => {
  const { begun, bring, end } = pieces(new FairWorkQueue(2));
  const [ada, bob] = [{}, {}];
  for (const name of ["a1", "a2", "a3", "a4"]) void bring(ada, name);
  const last = bring(bob, "b1");
  expect(begun).toEqual(["a1", "a2"]);
  await end("a1");
  expect(begun).toEqual(["a1", "a2", "a3"]);
  await end("a2");
  expect(begun).toEqual(["a1", "a2", "a3", "b1"]);
  await end("b1");
  expect(await last).toBe("b1");
  expect(begun.at(-1)).toBe("a4");
});

test("a failed piece makes room for the next one", async () => {
  const { begun, bring, fail, end } = pieces(new FairWorkQueue(1));
  const first = bring({}, "first");
  const second = bring({}, "second");
  fail("first");
  await expect(first).rejects.toThrow("first");
  await end("second");
  expect([begun, await second]).toEqual([["first", "second"], "second"]);
});

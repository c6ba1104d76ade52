import { expect, test } from "vitest";
import { batchLookups } from "../../../runtime/concurrency/batched-lookup.ts";

test("calls during a run share one run afterwards", async () => {
  const questions: (readonly string[])[] = [];
  const ask = batchLookups(async (keys) => {
    questions.push(keys);
    await new Promise(setImmediate);
    return keys.length;
  });
  const first = ask("a");
  await Promise.resolve();
  expect(await Promise.all([first, ask("b"), ask("c"), ask("b")])).toEqual([1, 2, 2, 2]);
  expect(questions).toEqual([["a"], ["b", "c"]]);
});

test("a run that fails rejects its own callers, and no later ones", async () => {
  const ask = batchLookups(async (keys) => {
    if (keys.includes("bad")) throw new Error("no answer");
    return keys;
  });
  await expect(ask("bad")).rejects.toThrow("no answer");
  expect(await ask("good")).toEqual(["good"]);
});

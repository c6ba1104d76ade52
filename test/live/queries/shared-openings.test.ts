import { expect, test } from "vitest";
import { SharedOpenings } from "../../../live/queries/shared-openings.ts";

test("the first opening of a key does the work, and the others wait for its end", async () => {
  const openings = new SharedOpenings();
  const { promise, resolve } = Promise.withResolvers<void>();
  const done: string[] = [];
  const open = (key: string) => openings.beFirst(key, () => promise.then(() => void done.push(key)));
  const opened = [open("a"), open("a"), open("b")];
  resolve();
  expect(await Promise.all(opened)).toEqual([true, false, true]);
  expect(done).toEqual(["a", "b"]);
  expect(await open("a")).toBe(true);
});

test("a failure is that of the first opening only", async () => {
  const openings = new SharedOpenings();
  const open = () => openings.beFirst("a", () => Promise.reject(new Error("failed")));
  const [first, second] = await Promise.allSettled([open(), open()]);
  expect(first).toMatchObject({ status: "rejected" });
  expect(second).toEqual({ status: "fulfilled", value: false });
});

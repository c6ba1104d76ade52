import { expect, test } from "vitest";
import { loadImageTransformer } from "../../files/index.ts";

test("without the package sharp there is no transformer", async () => {
  expect(await loadImageTransformer(() => Promise.reject(new Error("Cannot find package 'sharp'")))).toBeNull();
});

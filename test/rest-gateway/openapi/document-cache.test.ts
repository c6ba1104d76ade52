import { describe, expect, test, vi } from "vitest";
import { DocumentCache } from "../../../rest-gateway/openapi/written-document.ts";

const bytes = (size: number) => vi.fn(async () => ({ gzip: Buffer.alloc(size), bytes: 60 * size, digest: "" }));

describe("the documents that were made", () => {
  test("are made once, also when two ask at the same time", async () => {
    const cache = new DocumentCache();
    const make = bytes(1);
    const [first, second] = await Promise.all([cache.get("a", 1, make), cache.get("a", 1, make)]);
    expect(second).toBe(first);
    expect(await cache.get("a", 1, make)).toBe(first);
    expect(make).toHaveBeenCalledOnce();
  });

  test("are made anew for another catalogue, and those of older ones are forgotten", async () => {
    const cache = new DocumentCache();
    await cache.get("a", 1, bytes(1));
    await cache.get("b", 1, bytes(1));
    const make = bytes(1);
    await cache.get("a", 2, make);
    expect(make).toHaveBeenCalledOnce();
    expect(cache.size).toBe(1);
  });

  test("take so much memory and no more: the one not asked for the longest goes first", async () => {
    const cache = new DocumentCache({ mostBytes: 10 });
    await cache.get("a", 1, bytes(4));
    await cache.get("b", 1, bytes(4));
    await cache.get("a", 1, bytes(4));
    await cache.get("c", 1, bytes(4));
    const [again, anew] = [bytes(4), bytes(4)];
    await cache.get("a", 1, again);
    await cache.get("b", 1, anew);
    expect(again).not.toHaveBeenCalled();
    expect(anew).toHaveBeenCalledOnce();
  });

  test("are so many and no more, however small they are", async () => {
    const cache = new DocumentCache();
    for (let index = 0; index < 1_100; index++) await cache.get(`tables ${index}`, 1, bytes(1));
    expect(cache.size).toBe(1_000);
  });

  test("one that is larger than the bound stays until the next comes", async () => {
    const cache = new DocumentCache({ mostBytes: 10 });
    const make = bytes(100);
    await cache.get("a", 1, make);
    await cache.get("a", 1, make);
    expect(make).toHaveBeenCalledOnce();
    await cache.get("b", 1, bytes(1));
    expect(cache.size).toBe(1);
  });

  test("a failure is told and not kept", async () => {
    const cache = new DocumentCache();
    await expect(cache.get("a", 1, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(cache.size).toBe(0);
  });
});

import { describe, expect, test, vi } from "vitest";
import { DocumentCache } from "../../../../rest-gateway/openapi/document/printed-document.ts";

const bytes = (size: number) => vi.fn(async () => ({ gzip: Buffer.alloc(size), bytes: 60 * size, digest: "" }));

describe("cached documents", () => {
  test("are made once, also for two concurrent requests", async () => {
    const cache = new DocumentCache();
    const make = bytes(1);
    const [first, second] = await Promise.all([cache.get("a", 1, make), cache.get("a", 1, make)]);
    expect(second).toBe(first);
    expect(await cache.get("a", 1, make)).toBe(first);
    expect(make).toHaveBeenCalledOnce();
  });

  test("are made again for another catalogue, and older ones are evicted", async () => {
    const cache = new DocumentCache();
    await cache.get("a", 1, bytes(1));
    await cache.get("b", 1, bytes(1));
    const make = bytes(1);
    await cache.get("a", 2, make);
    expect(make).toHaveBeenCalledOnce();
    expect(cache.size).toBe(1);
  });

  test("have a memory limit: the least recently used one is evicted first", async () => {
    const cache = new DocumentCache({ maxBytes: 10 });
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

  test("have a maximum number, however small they are", async () => {
    const cache = new DocumentCache();
    for (let index = 0; index < 1_100; index++) await cache.get(`tables ${index}`, 1, bytes(1));
    expect(cache.size).toBe(1_000);
  });

  test("above the memory limit stay until the next one is added", async () => {
    const cache = new DocumentCache({ maxBytes: 10 });
    const make = bytes(100);
    await cache.get("a", 1, make);
    await cache.get("a", 1, make);
    expect(make).toHaveBeenCalledOnce();
    await cache.get("b", 1, bytes(1));
    expect(cache.size).toBe(1);
  });

  test("do not include errors", async () => {
    const cache = new DocumentCache();
    await expect(cache.get("a", 1, () => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(cache.size).toBe(0);
  });
});

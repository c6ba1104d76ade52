import { appendFile, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import type { RecentRequest, RequestSearch } from "../../../http/observability/recent-requests.ts";
import { openRequestLog, RequestLog } from "../../../http/observability/request-log.ts";
import { searchRequestLog } from "../../../http/observability/search-request-log.ts";
import { useFolder } from "../../fixture.ts";

const parent = useFolder("request-log-");
let folder: string;
let warnings: object[];
beforeEach(() => {
  folder = join(parent, crypto.randomUUID());
  warnings = [];
});

const log = { warn: (details: object) => void warnings.push(details) } as never;
const open = (maxBytes = 1_000_000) => new RequestLog({ folder, maxBytes, log });
const request = (changes: Partial<RecentRequest> = {}): RecentRequest => ({
  ...{ at: 1, id: "a1", method: "GET", path: "/rest/v1/films", status: 200, milliseconds: 2, interface: "table" },
  ...changes,
});
const ALL: RequestSearch = { words: [], status: null, interface: null, leastMilliseconds: 0, limit: 200 };
const idsOf = async (search: Partial<RequestSearch> = {}) =>
  (await searchRequestLog(folder, { ...ALL, ...search })).requests.map(({ id }) => id);
const bytesOf = async () => {
  const sizes = (await readdir(folder)).map(async (name) => (await stat(join(folder, name))).size);
  return (await Promise.all(sizes)).reduce((sum, bytes) => sum + bytes, 0);
};

describe("a log of requests", () => {
  test("is found by the same filters as the last requests, the newest first", async () => {
    const requests = open();
    for (let at = 0; at < 5_000; at++) requests.add(request({ at, id: `r${at}`, status: at === 7 ? 503 : 200 }));
    await requests.flush();
    expect(await idsOf({ status: 5 })).toEqual(["r7"]);
    expect(await idsOf({ words: ["GET", "r4999"] })).toEqual(["r4999"]);
    expect(await idsOf({ limit: 3 })).toEqual(["r4999", "r4998", "r4997"]);
    expect((await searchRequestLog(folder, ALL)).searched).toBe(5_000);
  });

  test("is written by a process and its successors, and read by all", async () => {
    const first = open();
    first.add(request({ id: "before" }));
    await first.flush();
    const second = open();
    second.add(request({ at: 2, id: "after" }));
    await second.flush();
    expect(await idsOf()).toEqual(["after", "before"]);
  });

  test("has at most its bytes, and keeps the newest requests", async () => {
    const requests = open(64_000);
    for (let at = 0; at < 3_000; at++) {
      requests.add(request({ at, id: `r${at}` }));
      if (at % 100 === 99) await requests.flush();
    }
    expect(await bytesOf()).toBeLessThanOrEqual(64_000);
    const found = await idsOf({ limit: 10_000 });
    expect(found[0]).toBe("r2999");
    expect(found).toEqual(found.map((_, index) => `r${2_999 - index}`));
    expect(found.length).toBeGreaterThan(300);
  });

  test("has at most its bytes when a burst is written at once", async () => {
    const requests = open(64_000);
    for (let at = 0; at < 1_000; at++) requests.add(request({ at, path: `/${"x".repeat(299)}` }));
    await requests.flush();
    expect(await bytesOf()).toBeLessThanOrEqual(64_000);
    expect((await searchRequestLog(folder, ALL)).requests[0]!.at).toBe(999);
  });

  test("is read although a line is broken, and another is still being written", async () => {
    const requests = open();
    requests.add(request({ id: "whole" }));
    await requests.flush();
    const [name] = await readdir(folder);
    await appendFile(join(folder, name!), '{"at":2,"id":"bro\n{"at":3,"id":"half');
    expect(await idsOf()).toEqual(["whole"]);
  });

  test("can be read by nobody else on the machine", async () => {
    const requests = open();
    requests.add(request());
    await requests.flush();
    const [name] = await readdir(folder);
    expect((await stat(folder)).mode & 0o077).toBe(0);
    expect((await stat(join(folder, name!))).mode & 0o077).toBe(0);
  });

  test("that cannot be written is said once, and written again when it can", async () => {
    await mkdir(parent, { recursive: true });
    await writeFile(folder, "a file in place of the folder");
    const requests = open();
    for (const id of ["lost", "lost too"]) {
      requests.add(request({ id }));
      await requests.flush();
    }
    expect(warnings).toHaveLength(1);
    await rm(folder);
    requests.add(request({ id: "kept" }));
    await requests.flush();
    expect(await idsOf()).toEqual(["kept"]);
  });

  test("that was never written has no requests", async () => {
    expect(await searchRequestLog(folder, ALL)).toEqual({ requests: [], searched: 0 });
  });

  test("leaves other files of the folder alone", async () => {
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "notes.txt"), "x".repeat(100_000));
    const requests = open(64_000);
    for (let at = 0; at < 1_000; at++) requests.add(request({ at }));
    await requests.flush();
    expect(await readFile(join(folder, "notes.txt"), "utf8")).toHaveLength(100_000);
  });
});

test("without megabytes there is no log", () => {
  expect(openRequestLog({ dataDir: parent, requestLogMb: 0 }, log)).toBeNull();
  expect(openRequestLog({ dataDir: parent, requestLogMb: 1 }, log)).not.toBeNull();
});

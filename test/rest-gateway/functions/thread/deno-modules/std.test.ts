import { expect, test } from "vitest";
import { delay } from "../../../../../rest-gateway/functions/thread/deno-modules/delay.ts";
import { config, load } from "../../../../../rest-gateway/functions/thread/deno-modules/dotenv.ts";
import {
  isErrorStatus,
  STATUS_CODE,
  STATUS_TEXT,
  Status,
} from "../../../../../rest-gateway/functions/thread/deno-modules/http-status.ts";
import * as path from "../../../../../rest-gateway/functions/thread/deno-modules/path.ts";
import * as uuid from "../../../../../rest-gateway/functions/thread/deno-modules/uuid.ts";
import * as uuidV4 from "../../../../../rest-gateway/functions/thread/deno-modules/uuid-v4.ts";

const DNS = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";

test("UUIDs have their version, and those of a name are always the same", async () => {
  const random = uuid.v4.generate();
  expect([uuid.validate(random), uuid.version(random), uuid.v4.validate(random), uuid.v1.validate(random)]).toEqual([
    true,
    4,
    true,
    false,
  ]);
  expect(uuidV4.validate(uuidV4.generate())).toBe(true);
  const name = new TextEncoder().encode("python.org");
  expect(await uuid.v3.generate(DNS, name)).toBe("6fa459ea-ee8a-3ca4-894e-db77e160355e");
  expect(await uuid.v5.generate(DNS, name)).toBe("886313e1-3b8a-5372-9b90-0c9aee199e5d");
  expect([uuid.validate("no"), uuid.isNil(uuid.NIL_UUID)]).toEqual([false, true]);
  expect(() => uuid.version("no")).toThrow(TypeError);
});

test("a UUID by time has the time", () => {
  const before = BigInt(Date.now());
  const id = uuid.v1.generate();
  expect(uuid.v1.validate(id)).toBe(true);
  const [low, middle, high] = id.split("-");
  const ticks = BigInt(`0x${high!.slice(1)}${middle}${low}`) - 122_192_928_000_000_000n;
  const difference = ticks / 10_000n - before;
  expect(difference > -60_000n && difference < 60_000n).toBe(true);
});

test("statuses have names of all versions, and texts", () => {
  expect([STATUS_CODE.OK, STATUS_CODE.NotFound, STATUS_CODE.Teapot, Status.InternalServerError]).toEqual([
    200, 404, 418, 500,
  ]);
  expect(STATUS_TEXT[429]).toBe("Too Many Requests");
  expect([isErrorStatus(399), isErrorStatus(404)]).toEqual([false, true]);
});

test("paths are joined, and converted to URLs of files", () => {
  expect(path.join("/a", "../b", "c.txt")).toBe("/b/c.txt");
  expect(path.fromFileUrl(path.toFileUrl("/a/b c.txt"))).toBe("/a/b c.txt");
});

test("a delay ends, or is aborted", async () => {
  expect(await delay(1)).toBeUndefined();
  await expect(delay(60_000, { signal: AbortSignal.abort() })).rejects.toThrow();
});

test("variables of the environment are those of .env", async () => {
  expect(await load()).toMatchObject({ NODE_ENV: process.env.NODE_ENV });
  expect(await config()).toEqual(await load());
});

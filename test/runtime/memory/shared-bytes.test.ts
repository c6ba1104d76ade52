import { expect, test } from "vitest";
import { ByteQuota, SharedBytes } from "../../../runtime/memory/byte-quota.ts";

const KIB = 1024;

test("an object counts once, until its last holder releases it", () => {
  const quota = new ByteQuota(100);
  const shared = new SharedBytes<object>(quota);
  const item = {};
  shared.hold(item, 60);
  expect(shared.shortageOf({}, 60)).toBe("own");
  expect(shared.shortageOf(item, 60)).toBeNull();
  shared.hold(item, 60);
  expect(quota.held).toBe(60);
  shared.release(item, 60);
  expect(quota.held).toBe(60);
  shared.release(item, 60);
  shared.release(item, 60);
  expect(quota.held).toBe(0);
});

test("an object counts for each client that holds it, and once for all clients", () => {
  const total = new ByteQuota(100 * KIB);
  const all = new SharedBytes<object>(total);
  const quotas = [new ByteQuota(80 * KIB), new ByteQuota(80 * KIB)];
  const [one, other] = quotas.map((quota) => new SharedBytes<object>(quota, all));
  const item = {};
  one!.hold(item, 60 * KIB);
  other!.hold(item, 60 * KIB);
  expect([total.held, ...quotas.map(({ held }) => held)]).toEqual([60 * KIB, 60 * KIB, 60 * KIB]);
  expect(one!.shortageOf({}, 30 * KIB)).toBe("own");
  other!.release(item, 60 * KIB);
  expect(total.held).toBe(60 * KIB);
  expect(other!.shortageOf({}, 50 * KIB)).toBe("shared");
  expect(other!.shortageOf({}, 20 * KIB)).toBeNull();
  one!.release(item, 60 * KIB);
  expect(total.held).toBe(0);
});

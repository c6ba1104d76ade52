import { expect, test } from "vitest";
import { ByteQuota, Reservation } from "../../../runtime/memory/byte-quota.ts";

const KIB = 1024;

test("a quota grants its maximum, and no more", () => {
  const quota = new ByteQuota(100 * KIB);
  const [one, other] = [new Reservation(quota), new Reservation(quota)];
  expect(one.resize(60 * KIB)).toBeNull();
  expect(other.resize(41 * KIB)).toBe("own");
  expect(quota.held).toBe(60 * KIB);
  expect(other.resize(40 * KIB)).toBeNull();
  one.release();
  one.release();
  expect(quota.held).toBe(40 * KIB);
});

test("a reservation that cannot grow stays as it was, and can always shrink", () => {
  const quota = new ByteQuota(10);
  const reservation = new Reservation(quota);
  expect(reservation.resize(10)).toBeNull();
  expect(reservation.resize(11)).toBe("own");
  expect(quota.held).toBe(10);
  quota.hold(100);
  expect(reservation.resize(9)).toBeNull();
  expect(quota.held).toBe(109);
});

test("a holder is refused when all together exceed the quota, unless it holds little itself", () => {
  const together = new ByteQuota(100 * KIB);
  const [greedy, modest] = [new ByteQuota(1_000 * KIB, together), new ByteQuota(1_000 * KIB, together)];
  expect(new Reservation(greedy).resize(100 * KIB)).toBeNull();
  expect(new Reservation(greedy).resize(1)).toBe("shared");
  expect(new Reservation(modest).resize(33 * KIB)).toBe("shared");
  expect(new Reservation(modest).resize(32 * KIB)).toBeNull();
  expect(new Reservation(modest).resize(1)).toBe("shared");
  expect(together.held).toBe(132 * KIB);
});

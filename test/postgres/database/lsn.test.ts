import fc from "fast-check";
import { expect, test } from "vitest";
import { formatLsn, parseLsn } from "../../../postgres/database/lsn.ts";
import { LsnFloors } from "../../../postgres/database/lsn-floors.ts";

test("an LSN is parsed from Postgres's format", () => {
  expect(parseLsn("16/B374D848")).toBe(0x16_b374d848n);
  expect(parseLsn("ffffffff/0")).toBe(0xffffffff_00000000n);
});

test.each(["", "16", "16/", "/16", "1/2/3", "0x16/1", "123456789/0", "16/G", " 16/1"])("%j is not an LSN", (text) => {
  expect(parseLsn(text)).toBeNull();
});

test("every LSN is parsed as it was printed", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (lsn) => {
      expect(parseLsn(formatLsn(lsn))).toBe(lsn);
    }),
  );
});

test("a write in another process raises the floor of its subject", () => {
  const floors = new LsnFloors(10, 0);
  expect(floors.floorFor("alice", { place: 100n, askedAt: 10 }, 5)).toBe(100n);
  floors.wroteElsewhere("alice", 120n, 20);
  expect(floors.floorFor("alice", { place: 110n, askedAt: 15 }, 21)).toBe(120n);
  floors.wroteElsewhere("alice", 115n, 22);
  expect(floors.floorFor("alice", { place: 110n, askedAt: 15 }, 23)).toBe(120n);
});

test("a write at an unknown position, or of an unknown subject, in another process requires a later position", () => {
  const floors = new LsnFloors(10, 0);
  const before = { place: 100n, askedAt: 10 };
  expect(floors.floorFor("alice", before, 5)).toBe(100n);
  floors.wroteElsewhere("alice", null, 20);
  floors.wroteElsewhere("bob", 120n, 20);
  expect([floors.floorFor("alice", before, 21), floors.floorFor("bob", before, 21)]).toEqual([null, null]);
  const after = { place: 130n, askedAt: 22 };
  expect([floors.floorFor("alice", after, 23), floors.floorFor("bob", after, 23)]).toEqual([130n, 130n]);
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { formatLsn, parseLsn } from "../../../engine/database/lsn.ts";

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

import { afterEach, describe, expect, test, vi } from "vitest";
import {
  matchTimeStep,
  newBackupCodes,
  newTotpSecret,
  normalizeBackupCode,
  normalizeTotpCode,
  totpUri,
} from "../../accounts/factor-codes.ts";

/** RFC 6238 appendix B: "12345678901234567890" in base32; its codes there have eight digits, ours are the last six. */
const SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";

afterEach(() => vi.useRealTimers());
const at = (seconds: number) => vi.useFakeTimers({ toFake: ["Date"], now: seconds * 1000 });

describe("a code of an authenticator app", () => {
  test.each([
    [59, "287082"],
    [1_111_111_109, "081804"],
    [1_111_111_111, "050471"],
    [1_234_567_890, "005924"],
    [2_000_000_000, "279037"],
    [20_000_000_000, "353130"],
  ])("at second %i is %s, as in RFC 6238", async (seconds, code) => {
    at(seconds);
    expect(await matchTimeStep(SECRET, code)).toBe(Math.floor(seconds / 30));
  });

  test.each([
    [-60, false],
    [-30, true],
    [0, true],
    [30, true],
    [60, false],
  ])("is accepted %i seconds from its own step: %s", async (seconds, isTaken) => {
    const step = 37_037_037;
    at(step * 30 + seconds);
    expect(await matchTimeStep(SECRET, "050471")).toBe(isTaken ? step : null);
  });

  test("is six digits in any grouping", () => {
    expect(["123456", "123 456", " 123-456 "].map(normalizeTotpCode)).toEqual(["123456", "123456", "123456"]);
    expect(["12345", "1234567", "12345a", "", "１２３４５６"].map(normalizeTotpCode)).toEqual([
      null,
      null,
      null,
      null,
      null,
    ]);
  });
});

test("a secret has 160 bits, and its URI names the account", () => {
  const secret = newTotpSecret();
  expect(secret).toMatch(/^[A-Z2-7]{32}$/);
  expect(newTotpSecret()).not.toBe(secret);
  const uri = new URL(totpUri(secret, "content-service", "ada@example.org"));
  expect(uri.protocol).toBe("otpauth:");
  expect(decodeURIComponent(uri.pathname)).toBe("/content-service:ada@example.org");
  expect(uri.searchParams.get("secret")).toBe(secret);
});

describe("backup codes", () => {
  test("are ten different ones of eight unambiguous characters", () => {
    const codes = newBackupCodes();
    expect(new Set(codes).size).toBe(10);
    for (const code of codes) expect(code).toMatch(/^[a-km-np-z2-9]{8}$/);
  });

  test("are read in either case and in groups", () => {
    expect(["abcd2345", "ABCD-2345", "abcd 2345"].map(normalizeBackupCode)).toEqual(Array(3).fill("abcd2345"));
    expect(["abcd234", "abcd23456", "abcd234l", "abcd2340", "123456"].map(normalizeBackupCode)).toEqual(
      Array(5).fill(null),
    );
  });
});

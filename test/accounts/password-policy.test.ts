import { describe, expect, test } from "vitest";
import { checkNewPassword, isCommonPassword, type PasswordPolicy } from "../../accounts/password-policy.ts";
import type { ApiError } from "../../runtime/errors.ts";

function faultsOf(password: string, policy: PasswordPolicy = "standard", known: string[] = []): string[] {
  try {
    checkNewPassword(password, { policy, field: "password", personalWords: known });
    return [];
  } catch (error) {
    const { kind, code, details } = error as ApiError;
    expect({ kind, code }).toEqual({ kind: "invalid", code: "VALIDATION_ERROR" });
    return (details as { field: string; message: string }[]).map(({ field, message }) => `${field}: ${message}`);
  }
}

describe("a new password", () => {
  test.each([
    ["standard", "Quartz8b"],
    ["standard", "Ünlü-Çay-9"],
    ["standard", `Nobody can guess this 1 ${"long phrase ".repeat(80)}`],
    ["strict", "Quartz-and-8-birds"],
    ["strict", "Quartz 8 birds in a tree"],
  ] as const)("under the %s policy may be %s", (policy, password) => {
    expect(faultsOf(password, policy)).toEqual([]);
  });

  test.each([
    ["standard", "Quartz8", "at least 8"],
    ["standard", "quartz8bird", "an upper-case letter"],
    ["standard", "QUARTZ8BIRD", "a lower-case letter"],
    ["standard", "QuartzBird", "a digit"],
    ["strict", "Quartz8bir!", "at least 12"],
    ["strict", "Quartz8birdsfly", "a special character"],
    ["standard", `Quartz8${"é".repeat(510)}`, "at most 1024 bytes"],
    ["standard", "Password1", "Many people"],
  ] as const)("under the %s policy may not be %s: %s", (policy, password, fault) => {
    const faults = faultsOf(password, policy);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toContain(fault);
  });

  test("is refused with all faults at once", () => {
    expect(faultsOf("", "strict")).toEqual([
      "password: Use at least 12 characters.",
      "password: Use an upper-case letter, a lower-case letter, a digit, a special character as well.",
    ]);
  });

  test("is refused with the faults in the message too, for error formats without details", () => {
    expect(() => checkNewPassword("short", { policy: "standard", field: "password" })).toThrow(
      "This password is too easy to guess, or too long. Use at least 8 characters. Use an upper-case letter, a digit as well.",
    );
  });

  test("is measured in characters, not in bytes or UTF-16 units", () => {
    expect(faultsOf("Aa1🦊🦊🦊🦊")).toEqual(["password: Use at least 8 characters."]);
    expect(faultsOf("Aa1🦊🦊🦊🦊🦊")).toEqual([]);
  });

  test("of millions of characters is refused immediately", () => {
    for (const signs of ["!".repeat(2_000_000), "\u0300\u0316".repeat(1_000_000)]) {
      expect(faultsOf(`a${signs}a`)[0]).toContain("at most 1024 bytes");
    }
    expect(isCommonPassword(`a${"!".repeat(2_000_000)}a`)).toBe(false);
  });

  test("must not be the user's name or address", () => {
    expect(faultsOf("Bob7@example.org", "standard", ["bob7@EXAMPLE.org"])).toEqual([
      "password: Use something else than your name or address.",
    ]);
  });
});

describe("the list of common passwords", () => {
  test.each([
    "Password1",
    "Password123",
    "Password123!",
    "P@ssw0rd",
    "P@$$w0rd2024",
    "Passw0rd!",
    "Qwerty123",
    "Qwerty123456",
    "Abc12345",
    "Abcd1234",
    "Aa123456",
    "Aa123456!",
    "Welcome1",
    "Welcome2026!",
    "Admin123",
    "Admin@123",
    "Iloveyou1",
    "1Q2w3e4r",
    "1qaz2WSX",
    "Zaq12wsx",
    "Qwer1234",
    "Asdf1234",
    "Letmein1",
    "Monkey123",
    "Dragon123",
    "Football1",
    "Summer2025",
    "Winter2024!",
    "Test1234",
    "Changeme1",
    "Princess1",
    "Sunshine1",
    "Charlie1",
    "Michael1",
    "Liverpool1",
    "Chelsea1",
    "Superman1",
    "Pokemon123",
    "Passw0rd1",
    "Hello123",
    "TestTest1",
    "123Qwe123",
    "Azerty123",
    "Master123",
    "Shadow12",
    "Jordan23",
    "Trustno1",
    "Secret123",
    "Baseball1",
    "We1come1",
    "Motdepasse1",
    "Passwort1",
    "Contraseña1",
  ])("is %s", (password) => {
    expect(isCommonPassword(password)).toBe(true);
  });

  test.each([
    "Quartz8bird",
    "Aa!7#9$2&5",
    "Tangerine-Boat-7",
    "correct Horse battery Staple 1",
    "xK9#mLp2vQ",
    "Mypasswordisverylongindeed1",
    "Abc90817263544210",
  ])("is not %s", (password) => {
    expect(isCommonPassword(password)).toBe(false);
  });
});

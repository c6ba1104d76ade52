import { describe, expect, test } from "vitest";
import {
  DEFAULT_PARAMETERS,
  dummyHash,
  hashLike,
  hashPassword,
  isOutdated,
  matchesHash,
} from "../../accounts/passwords.ts";

const PHC = /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/;

describe("a password hash", () => {
  test("is an argon2id PHC string with a random salt", async () => {
    const [first, second] = await Promise.all([
      hashPassword(DEFAULT_PARAMETERS, "secret"),
      hashPassword(DEFAULT_PARAMETERS, "secret"),
    ]);
    expect(first).toMatch(PHC);
    expect(second).toMatch(PHC);
    expect(first).not.toBe(second);
  });

  test("matches only that password, up to its last byte", async () => {
    const long = "pass phrase ".repeat(80);
    const hash = await hashPassword(DEFAULT_PARAMETERS, long);
    expect(await matchesHash(hash, long)).toBe(true);
    expect(await matchesHash(hash, `${long.slice(0, -1)}.`)).toBe(false);
    expect(await matchesHash(hash, long.slice(0, 72))).toBe(false);
    expect(await matchesHash(hash, "")).toBe(false);
  });

  test("is the same for canonically equivalent characters", async () => {
    expect(await matchesHash(await hashPassword(DEFAULT_PARAMETERS, "Zürich-Straße"), "Zu\u0308rich-Straße")).toBe(
      true,
    );
  });

  test("agrees with another implementation of argon2", async () => {
    // The reference implementation made it: echo -n password | argon2 somesalt -id -t 2 -m 16 -p 1 -l 24 -e
    const theirs = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
    expect(await matchesHash(theirs, "password")).toBe(true);
    expect(await matchesHash(theirs, "Password")).toBe(false);
    expect(await hashLike(theirs, "password")).toBe(theirs);
    expect(isOutdated(theirs, DEFAULT_PARAMETERS)).toBe(true);
    expect(isOutdated(await hashPassword(DEFAULT_PARAMETERS, "password"), DEFAULT_PARAMETERS)).toBe(false);
  });

  test.each([
    // The same algorithm, as different programs name it.
    "$2a$04$EGdrhbKUv8Oc9vGiXX0HQOxSg445d458Muh7DAHskb6QbtCvdxcie",
    "$2b$04$EGdrhbKUv8Oc9vGiXX0HQOxSg445d458Muh7DAHskb6QbtCvdxcie",
    "$2y$04$EGdrhbKUv8Oc9vGiXX0HQOxSg445d458Muh7DAHskb6QbtCvdxcie",
  ])("of bcrypt, as of imported accounts, is compared and outdated: %s", async (hash) => {
    expect(await matchesHash(hash, "correctbatteryhorsestapler")).toBe(true);
    expect(await matchesHash(hash, "Secret")).toBe(false);
    expect(isOutdated(hash, DEFAULT_PARAMETERS)).toBe(true);
  });

  test("of an unknown user looks like any other and matches no password", async () => {
    expect(dummyHash(DEFAULT_PARAMETERS)).toMatch(PHC);
    expect(await matchesHash(dummyHash(DEFAULT_PARAMETERS), "")).toBe(false);
  });

  test.each(["", "$2b$12$abc", "$argon2i$v=19$m=1,t=1,p=1$YQ$YQ", "$argon2id$v=16$m=1,t=1,p=1$YQ$YQ"])(
    "%j is invalid, which is an internal error and not a wrong password",
    async (phc) => {
      await expect(matchesHash(phc, "x")).rejects.toThrow("argon2id");
    },
  );
});

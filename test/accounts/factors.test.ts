import { generate } from "otplib";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { useFixture } from "../fixture.ts";
import { eventsOf, from, newPerson, openAccounts, PASSWORD } from "./open-accounts.ts";

const opened = useFixture(openAccounts);
/** The middle of a step, so that no code ends while a test looks at it. */
beforeEach(() => vi.useFakeTimers({ toFake: ["Date"], now: 1_800_000_015_000 }));
afterEach(() => vi.useRealTimers());

const nextStep = () => vi.setSystemTime(Date.now() + 30_000);
const codeOf = (secret: string) => generate({ secret });
const sql = (statement: string, ...values: unknown[]) => opened.owner.query(statement, values);
const login = (username: string, code?: string, clientInfo = from()) =>
  opened.accounts.login({ username, password: PASSWORD, code }, clientInfo, opened.accounts.tokens.open);

async function enrolled() {
  const person = await newPerson(opened);
  const { secret } = await opened.accounts.factors.enroll(person.userId, from());
  const { backupCodes } = await opened.accounts.factors.enable(person.userId, await codeOf(secret), from());
  nextStep();
  return { ...person, secret, backupCodes };
}

describe("the enrolment of an authenticator app", () => {
  test("returns a secret and a QR code; sign-in requires no code until a code was verified", async () => {
    const { userId, email } = await newPerson(opened);
    const { secret, uri, qrCode } = await opened.accounts.factors.enroll(userId, from());
    expect(uri).toContain(secret);
    expect(decodeURIComponent(uri)).toContain(`content-service:${email}`);
    expect(qrCode).toMatch(/^data:image\/png;base64,/);
    await expect(login(email)).resolves.toBeTruthy();

    const { backupCodes } = await opened.accounts.factors.enable(userId, await codeOf(secret), from());
    expect(backupCodes).toHaveLength(10);
    for (const code of backupCodes) expect(code).toHaveLength(8);
    await expect(login(email)).rejects.toMatchObject({ kind: "unauthenticated", code: "MFA_REQUIRED" });
    expect(await eventsOf(opened, userId)).toEqual([
      "account.created",
      "factor.enrolled",
      "refresh_token.created",
      "factor.enabled",
    ]);
  });

  test("stays pending after a wrong code", async () => {
    const { userId } = await newPerson(opened);
    const { secret } = await opened.accounts.factors.enroll(userId, from());
    const wrong = String((Number(await codeOf(secret)) + 1) % 1_000_000).padStart(6, "0");
    for (const code of [wrong, "", "12345", "abcd2345"]) {
      await expect(opened.accounts.factors.enable(userId, code, from())).rejects.toMatchObject({
        kind: "invalid",
        code: "INVALID_CODE",
      });
    }
    await expect(opened.accounts.factors.enable(userId, await codeOf(secret), from())).resolves.toBeTruthy();
  });

  test("replaces a pending secret when it is started again", async () => {
    const { userId } = await newPerson(opened);
    const first = await opened.accounts.factors.enroll(userId, from());
    const second = await opened.accounts.factors.enroll(userId, from());
    await expect(opened.accounts.factors.enable(userId, await codeOf(first.secret), from())).rejects.toMatchObject({
      code: "INVALID_CODE",
    });
    await expect(opened.accounts.factors.enable(userId, await codeOf(second.secret), from())).resolves.toBeTruthy();
  });

  test("is refused while a factor is enabled, and so is verifying without an enrolment", async () => {
    const { userId, secret } = await enrolled();
    await expect(opened.accounts.factors.enroll(userId, from())).rejects.toMatchObject({ code: "TAKEN" });
    for (const id of [userId, (await newPerson(opened)).userId]) {
      await expect(opened.accounts.factors.enable(id, await codeOf(secret), from())).rejects.toMatchObject({
        kind: "invalid",
        code: "VALIDATION_ERROR",
      });
    }
  });

  test("requires an account", async () => {
    await expect(opened.accounts.factors.enroll("999999", from())).rejects.toMatchObject({ code: "NTFND" });
  });

  test("enables the factor once if it is verified twice concurrently", async () => {
    const { userId } = await newPerson(opened);
    const { secret } = await opened.accounts.factors.enroll(userId, from());
    const code = await codeOf(secret);
    const answers = await Promise.allSettled([1, 2, 3].map(() => opened.accounts.factors.enable(userId, code, from())));
    expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    expect((await sql("select from auth.mfa_backup_codes where user_id = $1", userId)).rowCount).toBe(10);
  });
});

describe("a sign-in with a factor", () => {
  test("requires a code, which works once", async () => {
    const { email, secret } = await enrolled();
    const code = await codeOf(secret);
    await expect(login(email, code)).resolves.toBeTruthy();
    await expect(login(email, code)).rejects.toMatchObject({ kind: "unauthenticated", code: "INVALID_CODE" });
    nextStep();
    await expect(login(email, await codeOf(secret))).resolves.toBeTruthy();
    await expect(login(email, code), "the step before").rejects.toMatchObject({ code: "INVALID_CODE" });
  });

  test("does not accept the code that enabled the factor", async () => {
    const { userId, email } = await newPerson(opened);
    const { secret } = await opened.accounts.factors.enroll(userId, from());
    const code = await codeOf(secret);
    await opened.accounts.factors.enable(userId, code, from());
    await expect(login(email, code)).rejects.toMatchObject({ code: "INVALID_CODE" });
  });

  test("succeeds once if several use the same code concurrently", async () => {
    const { email, secret } = await enrolled();
    const code = await codeOf(secret);
    const answers = await Promise.allSettled([1, 2, 3, 4].map(() => login(email, code)));
    expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  test("accepts each backup code once, in either case and in groups", async () => {
    const { userId, email, backupCodes } = await enrolled();
    const [first, second] = backupCodes as [string, string];
    await expect(login(email, first)).resolves.toBeTruthy();
    await expect(login(email, first)).rejects.toMatchObject({ kind: "unauthenticated", code: "INVALID_CODE" });
    await expect(login(email, `${second.slice(0, 4)}-${second.slice(4)}`.toUpperCase())).resolves.toBeTruthy();
    expect((await eventsOf(opened, userId)).filter((event) => event === "backup_code.used")).toHaveLength(2);
  });

  test("succeeds once if several use the same backup code concurrently", async () => {
    const { email, backupCodes } = await enrolled();
    const answers = await Promise.allSettled([1, 2, 3, 4].map(() => login(email, backupCodes[0])));
    expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  });

  test("does not accept codes of other users", async () => {
    const [ada, bob] = [await enrolled(), await enrolled()];
    await expect(login(ada.email, bob.backupCodes[0])).rejects.toMatchObject({ code: "INVALID_CODE" });
    await expect(login(ada.email, await codeOf(bob.secret))).rejects.toMatchObject({ code: "INVALID_CODE" });
  });

  test("counts a wrong code as a failed attempt, but not a missing one", async () => {
    const { email, secret } = await enrolled();
    const here = from();
    for (let n = 0; n < 7; n++)
      await expect(login(email, undefined, here)).rejects.toMatchObject({ code: "MFA_REQUIRED" });
    for (const code of ["000", "abcd2345", "rubbish", "", "x"].filter(Boolean)) {
      await expect(login(email, code, here)).rejects.toMatchObject({ code: "INVALID_CODE" });
    }
    await expect(login(email, "1", here)).rejects.toMatchObject({ code: "INVALID_CODE" });
    await expect(login(email, await codeOf(secret), here)).rejects.toMatchObject({ kind: "rateLimited" });
  });

  test("with a wrong password reveals nothing about the factor and uses no code", async () => {
    const { email, secret } = await enrolled();
    const code = await codeOf(secret);
    const { accounts } = opened;
    for (const given of [code, undefined, "000000"]) {
      const credentials = { username: email, password: "Another-Boat-8", code: given };
      await expect(accounts.login(credentials, from(), accounts.tokens.open)).rejects.toMatchObject({
        code: "INVALID_CREDENTIALS",
      });
    }
    await expect(login(email, code)).resolves.toBeTruthy();
  });

  test("ignores a code if the account has no factor", async () => {
    const { email } = await newPerson(opened);
    await expect(login(email, "123456")).resolves.toBeTruthy();
  });
});

describe("with a fresh code", () => {
  test("the factor can be disabled and enrolled again", async () => {
    const { userId, email, secret, backupCodes } = await enrolled();
    const code = await codeOf(secret);
    await opened.accounts.factors.disable(userId, code, from());
    await expect(login(email)).resolves.toBeTruthy();
    expect((await sql("select from auth.mfa_backup_codes where user_id = $1", userId)).rowCount).toBe(0);
    await expect(opened.accounts.factors.disable(userId, backupCodes[0]!, from())).rejects.toMatchObject({
      kind: "invalid",
    });
    await expect(opened.accounts.factors.enroll(userId, from())).resolves.toBeTruthy();
    expect(await eventsOf(opened, userId)).toContain("factor.disabled");
  });

  test("backup codes can be renewed, which invalidates the old ones", async () => {
    const { userId, email, backupCodes } = await enrolled();
    const renewed = await opened.accounts.factors.renewBackupCodes(userId, backupCodes[0]!, from());
    expect(renewed.backupCodes).toHaveLength(10);
    await expect(login(email, backupCodes[1])).rejects.toMatchObject({ code: "INVALID_CODE" });
    await expect(login(email, renewed.backupCodes[9])).resolves.toBeTruthy();
    expect(await eventsOf(opened, userId)).toContain("backup_codes.renewed");
  });

  test.each(["disable", "renewBackupCodes"] as const)(
    "only: %s by another one is refused, and counts as a failure",
    async (verb) => {
      const { userId, email, secret, backupCodes } = await enrolled();
      const code = await codeOf(secret);
      await login(email, code);
      const here = from();
      for (const wrong of [code, "000", "abcd2345", "", backupCodes[0]!.slice(1)]) {
        await expect(opened.accounts.factors[verb](userId, wrong, here)).rejects.toMatchObject({
          kind: "invalid",
          code: "INVALID_CODE",
        });
      }
      await expect(opened.accounts.factors[verb](userId, backupCodes[0]!, here)).rejects.toMatchObject({
        kind: "rateLimited",
      });
      await expect(login(email)).rejects.toMatchObject({ code: "MFA_REQUIRED" });
    },
  );

  test("users without a factor cannot use them, which is not counted as a failed attempt", async () => {
    const { userId, email } = await newPerson(opened);
    const here = from();
    for (let n = 0; n < 6; n++) {
      await expect(opened.accounts.factors.disable(userId, "123456", here)).rejects.toMatchObject({
        kind: "invalid",
        code: "VALIDATION_ERROR",
      });
    }
    await expect(login(email, undefined, here)).resolves.toBeTruthy();
  });
});

test("stored backup codes are as expensive to guess as passwords", async () => {
  const { userId } = await enrolled();
  const { rows } = await sql("select code_hash from auth.mfa_backup_codes where user_id = $1", userId);
  expect(rows).toHaveLength(10);
  for (const { code_hash } of rows) expect(code_hash).toMatch(/^\$argon2id\$v=19\$m=64,t=1,p=1\$/);
});

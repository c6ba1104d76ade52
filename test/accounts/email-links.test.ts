import { describe, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { eventsOf, from, newEmail, newPerson, openAccounts, PASSWORD } from "./open-accounts.ts";

const opened = useFixture(openAccounts);

const NEW = "Quartz-Bird-8";
const ENDED = { kind: "invalid", code: "INVALID_TOKEN" };
const links = () => opened.accounts.emailLinks;
const login = (username: string, password: string) =>
  opened.accounts.login({ username, password }, from(), opened.accounts.tokens.open);
const sql = (statement: string, ...values: unknown[]) => opened.owner.query(statement, values);
const aMinuteLater = () => sql("update auth.mail_tokens set created_at = created_at - interval '1 minute'");
const verify = async (userId: string) =>
  links().verifyEmail((await links().requestVerification(userId, from()))!.token, from());

describe("a link to reset the password", () => {
  test("sets a new password once and revokes all sessions and tokens", async () => {
    const { accounts } = opened;
    const { userId, email } = await newPerson(opened);
    const pair = await login(email, PASSWORD);
    const session = await accounts.login({ username: email, password: PASSWORD }, from(), accounts.sessions.open);
    const mail = await links().requestReset(email.toUpperCase(), from());
    expect(mail).toEqual({ to: email, token: expect.stringMatching(/^[\w-]{43}$/) });

    await links().resetPassword(mail!.token, NEW, from());
    await expect(login(email, PASSWORD)).rejects.toMatchObject({ code: "INVALID_CREDENTIALS" });
    await expect(login(email, NEW)).resolves.toBeTruthy();
    await expect(accounts.tokens.refresh(pair.refreshToken, from())).rejects.toMatchObject({ kind: "unauthenticated" });
    expect(await accounts.sessions.use(session.id)).toBeNull();
    await expect(links().resetPassword(mail!.token, NEW, from())).rejects.toMatchObject(ENDED);
    expect(await eventsOf(opened, userId)).toEqual(
      expect.arrayContaining(["password.reset_requested", "password.reset"]),
    );
  });

  test("works once if it is used concurrently", async () => {
    for (const make of [
      async () => (await newPerson(opened)).email,
      async () => {
        const email = newEmail();
        await sql("insert into users (name, email) values ('Eve', $1)", email);
        return email;
      },
    ]) {
      const mail = await links().requestReset(await make(), from());
      const words = ["Quartz-Bird-8", "Quartz-Bird-9", "Quartz-Bird-10"];
      const answers = await Promise.allSettled(words.map((word) => links().resetPassword(mail!.token, word, from())));
      expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      await expect(
        login(mail!.to, words[answers.findIndex(({ status }) => status === "fulfilled")]!),
      ).resolves.toBeTruthy();
    }
  });

  test("creates an account for a user without one", async () => {
    const email = newEmail();
    const { rows } = await sql("insert into users (name, email) values ('Eve', $1) returning id", email);
    const mail = await links().requestReset(email, from());
    await links().resetPassword(mail!.token, NEW, from());
    await expect(login(email, NEW)).resolves.toBeTruthy();
    expect(await eventsOf(opened, rows[0].id)).toContain("password.reset");
  });

  test("is not sent to unknown or disabled users, and at most once per minute", async () => {
    expect(await links().requestReset(newEmail(), from())).toBeNull();
    const { userId, email } = await newPerson(opened);
    const first = await links().requestReset(email, from());
    expect(first).not.toBeNull();
    expect(await links().requestReset(email, from())).toBeNull();
    await aMinuteLater();
    expect(await links().requestReset(email, from())).not.toBeNull();
    await expect(links().resetPassword(first!.token, NEW, from()), "the one before").rejects.toMatchObject(ENDED);
    await aMinuteLater();
    await sql("select auth.disable_account($1, null)", userId);
    expect(await links().requestReset(email, from())).toBeNull();
  });

  test.each([
    [
      "has expired",
      "update auth.mail_tokens set created_at = now() - interval '2 hours', expires_at = now() where user_id = $1",
    ],
    ["is of an account that was disabled", "select auth.disable_account($1, null)"],
    [
      "was sent to an address that the user has no longer",
      "update users set email = 'moved-' || id || '@example.org' where id = $1",
    ],
    ["is of a user who was deleted", "delete from users where id = $1"],
  ])("that %s is refused", async (_, statement) => {
    const { userId, email } = await newPerson(opened);
    const mail = await links().requestReset(email, from());
    await sql(statement, userId);
    await expect(links().resetPassword(mail!.token, NEW, from())).rejects.toMatchObject(ENDED);
  });

  test("stays valid after an attempt with a weak password", async () => {
    const { email } = await newPerson(opened);
    const mail = await links().requestReset(email, from());
    await expect(links().resetPassword(mail!.token, "easy", from())).rejects.toMatchObject({
      code: "VALIDATION_ERROR",
    });
    await expect(links().resetPassword(mail!.token, NEW, from())).resolves.toBeUndefined();
  });

  test("goes to the verified address, not to one that was entered later", async () => {
    const { userId, email } = await newPerson(opened);
    await verify(userId);
    await sql("update users set email = 'thief-' || id || '@example.org' where id = $1", userId);
    const mail = await links().requestReset(`thief-${userId}@example.org`, from());
    expect(mail!.to).toBe(email);
  });

  test("verifies the address that it was sent to", async () => {
    const { userId, email } = await newPerson(opened);
    await links().resetPassword((await links().requestReset(email, from()))!.token, NEW, from());
    expect(await links().requestVerification(userId, from())).toBeNull();
  });
});

describe("a link to verify the address", () => {
  test("works once, and is not sent again", async () => {
    const { userId, email } = await newPerson(opened);
    const mail = await links().requestVerification(userId, from());
    expect(mail!.to).toBe(email);
    expect(await links().requestVerification(userId, from()), "within a minute").toBeNull();
    await links().verifyEmail(mail!.token, from());
    await expect(links().verifyEmail(mail!.token, from())).rejects.toMatchObject(ENDED);
    await aMinuteLater();
    expect(await links().requestVerification(userId, from()), "verified").toBeNull();
    expect(await eventsOf(opened, userId)).toContain("email.verified");
  });

  test("is required again after a change of the address", async () => {
    const { userId } = await newPerson(opened);
    await verify(userId);
    await sql("update users set email = 'moved-' || id || '@example.org' where id = $1", userId);
    expect(await links().requestVerification(userId, from())).toMatchObject({ to: `moved-${userId}@example.org` });
  });

  test("that was sent to the previous address is refused", async () => {
    const { userId } = await newPerson(opened);
    const mail = await links().requestVerification(userId, from());
    await sql("update users set email = 'moved-' || id || '@example.org' where id = $1", userId);
    await expect(links().verifyEmail(mail!.token, from())).rejects.toMatchObject(ENDED);
  });

  test("cannot reset a password, and a reset link cannot verify an address", async () => {
    const { userId, email } = await newPerson(opened);
    const verification = await links().requestVerification(userId, from());
    const reset = await links().requestReset(email, from());
    await expect(links().resetPassword(verification!.token, NEW, from())).rejects.toMatchObject(ENDED);
    await expect(links().verifyEmail(reset!.token, from())).rejects.toMatchObject(ENDED);
    await links().verifyEmail(verification!.token, from());
  });

  test("ends what was asked for before the address was proved", async () => {
    const { userId, email } = await newPerson(opened);
    const verification = await links().requestVerification(userId, from());
    const reset = await links().requestReset(email, from());
    await links().verifyEmail(verification!.token, from());
    await expect(links().resetPassword(reset!.token, NEW, from())).rejects.toMatchObject(ENDED);
  });
});

test("only the digest of a link's token is stored", async () => {
  const { email } = await newPerson(opened);
  const mail = await links().requestReset(email, from());
  const { rows } = await sql(
    "select encode(token_hash, 'escape') as text from auth.mail_tokens where email = $1",
    email,
  );
  expect(rows).toHaveLength(1);
  expect(rows[0].text).not.toContain(mail!.token);
});

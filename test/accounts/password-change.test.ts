import { describe, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { eventsOf, from, newPerson, openAccounts, PASSWORD } from "./open-accounts.ts";

const opened = useFixture(openAccounts);

const NEW = "Quartz-Bird-8";
const login = (username: string, password: string) =>
  opened.accounts.login({ username, password }, from(), opened.accounts.tokens.open);

describe("a password change", () => {
  test("with the old password revokes all other sessions and tokens of the user", async () => {
    const { accounts } = opened;
    const { userId, email } = await newPerson(opened);
    const pair = await login(email, PASSWORD);
    const session = await accounts.login({ username: email, password: PASSWORD }, from(), accounts.sessions.open);
    const link = await accounts.emailLinks.requestReset(email, from());

    const change = { currentPassword: PASSWORD, newPassword: NEW };
    const next = await accounts.changePassword(userId, change, from(), accounts.sessions.open);
    expect(await accounts.sessions.use(session.id)).toBeNull();
    expect(await accounts.sessions.use(next.id)).not.toBeNull();
    await expect(accounts.tokens.refresh(pair.refreshToken, from())).rejects.toMatchObject({ kind: "unauthenticated" });
    await expect(accounts.emailLinks.resetPassword(link!.token, "Third-Word-9", from())).rejects.toMatchObject({
      kind: "invalid",
    });
    await expect(login(email, PASSWORD)).rejects.toMatchObject({ code: "INVALID_CREDENTIALS" });
    await expect(login(email, NEW)).resolves.toBeTruthy();
    expect(await eventsOf(opened, userId)).toContain("password.changed");
  });

  test("with a wrong old password is refused at its field, changes nothing, and counts as a failed attempt", async () => {
    const { accounts } = opened;
    const { userId, email } = await newPerson(opened);
    const pair = await login(email, PASSWORD);
    const here = from();
    const change = { currentPassword: "Another-Boat-8", newPassword: NEW };
    const attempt = () => accounts.changePassword(userId, change, here, accounts.tokens.open);
    for (let n = 0; n < 5; n++) {
      await expect(attempt()).rejects.toMatchObject({
        kind: "invalid",
        code: "INVALID_CREDENTIALS",
        details: [{ field: "currentPassword" }],
      });
    }
    await expect(attempt()).rejects.toMatchObject({ kind: "rateLimited" });
    await expect(accounts.tokens.refresh(pair.refreshToken, from())).resolves.toBeTruthy();
    await expect(login(email, PASSWORD)).resolves.toBeTruthy();
  });

  test.each(["easy", "Password1"])("to %s is refused and does not count as a failed attempt", async (newPassword) => {
    const { accounts } = opened;
    const { userId } = await newPerson(opened);
    const here = from();
    for (let n = 0; n < 6; n++) {
      const change = { currentPassword: PASSWORD, newPassword };
      await expect(accounts.changePassword(userId, change, here, accounts.tokens.open)).rejects.toMatchObject({
        kind: "invalid",
        code: "VALIDATION_ERROR",
      });
    }
  });

  test("succeeds once of two concurrent ones with the same old password", async () => {
    const { accounts } = opened;
    const { userId, email } = await newPerson(opened);
    const words = ["Quartz-Bird-8", "Quartz-Bird-9", "Quartz-Bird-10"];
    const changed = await Promise.allSettled(
      words.map((newPassword) =>
        accounts.changePassword(userId, { currentPassword: PASSWORD, newPassword }, from(), accounts.tokens.open),
      ),
    );
    const winners = words.filter((_, index) => changed[index]!.status === "fulfilled");
    expect(winners).toHaveLength(1);
    await expect(login(email, winners[0]!)).resolves.toBeTruthy();
  });

  test("requires an account", async () => {
    const { accounts } = opened;
    const change = { currentPassword: PASSWORD, newPassword: NEW };
    await expect(accounts.changePassword("999999", change, from(), accounts.tokens.open)).rejects.toMatchObject({
      kind: "forbidden",
      code: "PERMISSION_DENIED",
    });
  });
});

import { describe, expect, test } from "vitest";
import { inOwnerTransaction } from "../../postgres/database/owner-pool.ts";
import { useFixture } from "../fixture.ts";
import { claimsOf, from, newPerson, openAccounts, PASSWORD } from "./open-accounts.ts";

const opened = useFixture(openAccounts);

describe("a sign-in of a client of Supabase Auth", () => {
  test("goes on with the session that its access token names, and has the user", async () => {
    const { accounts, asOwner } = opened;
    const { userId, email } = await newPerson(opened);
    const first = await accounts.login({ username: email, password: PASSWORD }, from(), accounts.authSessions.open);
    const sessionId = String(claimsOf(first.tokens.accessToken).session_id);
    const next = await inOwnerTransaction(asOwner, (client) =>
      accounts.authSessions.continueSignIn(client, { userId, sessionId }, from()),
    );
    expect(claimsOf(next.tokens.accessToken)).toMatchObject({ sub: userId, session_id: sessionId });
    expect(next.user).toEqual(first.user);
  });

  test("does not go on when it has ended", async () => {
    const { accounts, asOwner } = opened;
    const { userId } = await newPerson(opened);
    const ended = { userId, sessionId: "5b0ac6a4-5b64-4d4e-8b1b-6d9ef1a3a8f0" };
    await expect(
      inOwnerTransaction(asOwner, (client) => accounts.authSessions.continueSignIn(client, ended, from())),
    ).rejects.toMatchObject({ reason: "sessionEnded" });
  });

  test("of a user who has to confirm an address first is refused, and the refresh token stays usable", async () => {
    await using strict = await openAccounts({ autoConfirm: false });
    const { accounts, owner } = strict;
    const { userId, email } = await newPerson(strict);
    const login = { username: email, password: PASSWORD };
    expect(await accounts.passwordLogin(login, from(), accounts.authSessions.openConfirmed)).toBeNull();
    const { refreshToken } = await accounts.login(login, from(), accounts.tokens.open);
    await expect(accounts.authSessions.refresh(refreshToken, from())).rejects.toMatchObject({
      code: "EMAIL_NOT_CONFIRMED",
    });
    await owner.query("update auth.users set email_confirmed_at = now(), verified_email = email where user_id = $1", [
      userId,
    ]);
    expect(await accounts.authSessions.refresh(refreshToken, from())).toMatchObject({ tokens: { userId } });
  });
});

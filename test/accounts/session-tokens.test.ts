import { afterEach, describe, expect, test, vi } from "vitest";
import type { SessionTokens } from "../../accounts/token-pairs.ts";
import { makeValidateClaims } from "../../accounts/validate-claims.ts";
import { inOwnerTransaction } from "../../postgres/database/owner-pool.ts";
import { useFixture } from "../fixture.ts";
import { claimsOf, from, newPerson, openAccounts, PASSWORD } from "./open-accounts.ts";

const opened = useFixture(openAccounts);
afterEach(() => vi.useRealTimers());

const ENDED = { kind: "unauthenticated", code: "INVALID_TOKEN" };
const sql = async (statement: string, ...values: unknown[]) => (await opened.owner.query(statement, values)).rows;

async function signIn() {
  const person = await newPerson(opened);
  const { accounts } = opened;
  const again = () =>
    accounts.login({ username: person.email, password: PASSWORD }, from(), accounts.sessionTokens.open);
  return { ...person, again, session: await again() };
}
const refresh = ({ refreshToken }: { refreshToken: string }) =>
  opened.accounts.sessionTokens.refresh(refreshToken, from());
const validate = ({ accessToken }: { accessToken: string }) =>
  makeValidateClaims({ asOwner: opened.asOwner, log: { warn: () => {} } })(claimsOf(accessToken));

describe("the access token of a session", () => {
  test("has the claims of Supabase Auth beside those of every token", async () => {
    const { userId, email, session: unproved, again } = await signIn();
    expect(claimsOf(unproved.accessToken)).toMatchObject({ email: "", phone: "" });
    const [account] = await sql("update auth.users set verified_email = email where user_id = $1 returning id", userId);
    const session = await again();
    const claims = claimsOf(session.accessToken);
    expect(claims).toEqual({
      aal: "aal1",
      amr: [{ method: "password", timestamp: expect.any(Number) }],
      app_metadata: { provider: "email", providers: ["email"], user_id: Number(userId) },
      aud: "authenticated",
      email,
      exp: expect.any(Number),
      iat: expect.any(Number),
      is_anonymous: false,
      iss: "content-service",
      name: "Ada",
      permissions: [],
      phone: "",
      role: "authenticated",
      session_id: session.sessionId,
      sub: userId,
      user_metadata: {},
    });
    expect(session.userId).toBe(userId);
    expect(Object.values(claims)).not.toContain(account!.id);
  });

  test("names the uuid of the account where subjects are uuids, and the account is still found", async () => {
    await using uuids = await openAccounts({ authSubject: "uuid" });
    const { userId, email } = await newPerson(uuids);
    const { accounts } = uuids;
    const login = { username: email, password: PASSWORD };
    const session = await accounts.login(login, from(), accounts.sessionTokens.open);
    const { rows } = await uuids.owner.query("select id from auth.users where user_id = $1", [userId]);
    const claims = claimsOf(session.accessToken);
    expect(claims).toMatchObject({ sub: rows[0].id, user_id: userId });
    expect(claimsOf((await accounts.sessionTokens.refresh(session.refreshToken, from())).accessToken).sub).toBe(
      claims.sub,
    );
    const uid = "select set_config('request.jwt.claims', $1, true), auth.uid() as id";
    expect((await uuids.owner.query(uid, [JSON.stringify(claims)])).rows[0].id).toBe(userId);
    await uuids.owner.query("select auth.disable_account($1, null)", [userId]);
    const check = makeValidateClaims({ asOwner: uuids.asOwner, log: { warn: () => {} } });
    expect(await check(claims)).toMatchObject({ message: "This account is disabled." });
    // The documented tokens keep their subject.
    await uuids.owner.query("select auth.enable_account($1, null)", [userId]);
    expect(claimsOf((await accounts.login(login, from(), accounts.tokens.open)).accessToken).sub).toBe(userId);
  });

  test("has the level and methods of the sign-in, also after a refresh, and the metadata of now", async () => {
    const { userId, session } = await signIn();
    await sql("select auth.add_session_method($1, $2, 'totp', 2::smallint)", userId, session.sessionId);
    await opened.accounts.own.setUserMetadata(userId, { theme: "dark", gone: 1, kept: [1] });
    await opened.accounts.own.setUserMetadata(userId, { gone: null, theme: "light" });
    await sql(`select auth.set_metadata($1, null, '{"plan": "free"}')`, userId);
    const claims = claimsOf((await refresh(session)).accessToken);
    expect(claims).toMatchObject({
      aal: "aal2",
      amr: [{ method: "totp" }, { method: "password" }],
      app_metadata: { plan: "free", provider: "email" },
      session_id: session.sessionId,
    });
    expect(claims.user_metadata).toEqual({ theme: "light", kept: [1] });
    const large = { text: "x".repeat(9000) };
    await expect(opened.accounts.own.setUserMetadata(userId, large)).rejects.toMatchObject({ code: "WRONG" });
  });
});

describe("a refresh token of a session", () => {
  test("that is used again within ten seconds gets the same tokens", async () => {
    const { session } = await signIn();
    const next = await refresh(session);
    expect(await refresh(session)).toEqual(next);
    const last = await refresh(next);
    expect(await refresh(session)).toEqual(next);
    expect(await refresh(next)).toEqual(last);
    expect(await validate(last)).toBeNull();
  });

  const afterTenSeconds = () =>
    sql("update auth.refresh_tokens set sealed_until = now() - interval '1 second' where sealed_until is not null");

  test("that is used again later, by a client that has lost the response, continues the sign-in", async () => {
    const { session } = await signIn();
    const lost = await refresh(session);
    await afterTenSeconds();
    const lostAgain = await refresh(session);
    await afterTenSeconds();
    const next = await refresh(session);
    expect(new Set([lost, lostAgain, next].map(({ refreshToken }) => refreshToken)).size).toBe(3);
    expect(next.sessionId).toBe(session.sessionId);
    const last = await refresh(next);
    expect(await validate(last)).toBeNull();
  });

  test("that is used again once the next one was used ends the sign-in", async () => {
    const { session } = await signIn();
    const next = await refresh(session);
    const last = await refresh(next);
    await afterTenSeconds();
    await expect(refresh(session)).rejects.toMatchObject(ENDED);
    await expect(refresh(next)).rejects.toMatchObject(ENDED);
    expect(await validate(last)).toMatchObject(ENDED);
  });

  test("can be exchanged by the documented route, where a second use ends the sign-in at once", async () => {
    const { session } = await signIn();
    const pair = await opened.accounts.tokens.refresh(session.refreshToken, from());
    expect(claimsOf(pair.accessToken)).not.toHaveProperty("session_id");
    expect((await refresh(pair)).sessionId).toBe(session.sessionId);
    await expect(opened.accounts.tokens.refresh(session.refreshToken, from())).rejects.toMatchObject(ENDED);
    expect(await validate(session)).toMatchObject(ENDED);
  });

  test("that two clients use at the same time gives both the same session, a thousand times", async () => {
    const { userId, session } = await signIn();
    let current: SessionTokens = session;
    for (let round = 0; round < 1000; round++) {
      const [one, other] = await Promise.all([refresh(current), refresh(current)]);
      expect(other).toEqual(one);
      current = one;
    }
    expect(await sql("select id from auth.token_sessions where user_id = $1", userId)).toEqual([
      { id: session.sessionId },
    ]);
    const open = "select from auth.refresh_tokens where user_id = $1 and rotated_at is null and revoked_at is null";
    expect(await sql(open, userId)).toHaveLength(1);
  });
});

describe("a sign-out", () => {
  test.each([
    ["local", [true, false]],
    ["others", [false, true]],
    ["global", [true, true]],
  ] as const)(
    "with scope %s ends the right sign-ins: of this one and another %j",
    async (scope, [endsThis, endsOther]) => {
      const { userId, again, session } = await signIn();
      const other = await again();
      const { own } = opened.accounts;
      await own.signOut(userId, session.sessionId, scope, from());
      for (const [tokens, ends] of [
        [session, endsThis],
        [other, endsOther],
      ] as const) {
        expect(await own.tokenSessionState(userId, tokens.sessionId)).toBe(ends ? "ended" : "live");
        expect(await validate(tokens)).toEqual(ends ? expect.objectContaining({ code: expect.any(String) }) : null);
        if (ends) await expect(refresh(tokens)).rejects.toMatchObject(ENDED);
        else expect((await refresh(tokens)).sessionId).toBe(tokens.sessionId);
      }
    },
  );

  test("of the documented route ends sessions, and the other way round", async () => {
    const { userId, email, session } = await signIn();
    const { accounts } = opened;
    await accounts.tokens.revoke(userId, from());
    expect(await validate(session)).toMatchObject(ENDED);
    const login = { username: email, password: PASSWORD };
    const pair = await accounts.login(login, from(), accounts.tokens.open);
    const cookie = await accounts.login(login, from(), accounts.sessions.open);
    await accounts.own.signOut(userId, null, "global", from());
    await expect(accounts.tokens.refresh(pair.refreshToken, from())).rejects.toMatchObject(ENDED);
    expect(await validate(pair)).toMatchObject({ code: "TOKEN_EXPIRED" });
    expect(await accounts.sessions.use(cookie.id)).toBeNull();
  });

  test("of a session of another issuer that shares the keys is not known here", async () => {
    const claims = { sub: "1", session_id: "5b0ac6a4-5b64-4d4e-8b1b-6d9ef1a3a8f0", role: "authenticated" };
    expect(await makeValidateClaims({ asOwner: opened.asOwner, log: { warn: () => {} } })(claims)).toBeNull();
  });
});

describe("a ban", () => {
  test("ends sign-ins and refuses new ones until it is over", async () => {
    const { userId, again, session } = await signIn();
    await sql("select auth.ban_account($1, now() + interval '1 hour', null)", userId);
    expect(await validate(session)).toMatchObject(ENDED);
    await expect(refresh(session)).rejects.toMatchObject(ENDED);
    await expect(again()).rejects.toMatchObject({ code: "ACCOUNT_DISABLED" });
    await sql("update auth.users set banned_until = now() - interval '1 second' where user_id = $1", userId);
    expect(await validate(await again())).toBeNull();
  });
});

test("a sign-in without a stated method has none in its claims", async () => {
  const { userId } = await newPerson(opened);
  const session = await inOwnerTransaction(opened.asOwner, (client) =>
    opened.accounts.sessionTokens.open(client, userId, from()),
  );
  expect(claimsOf(session.accessToken)).toMatchObject({ aal: "aal1", amr: [] });
});

import { afterEach, describe, expect, test, vi } from "vitest";
import { useFixture } from "../fixture.ts";
import { claimsOf, eventsOf, from, newPerson, openAccounts, PASSWORD } from "./open-accounts.ts";

const opened = useFixture(openAccounts);
afterEach(() => vi.useRealTimers());

const ENDED = {
  kind: "unauthenticated",
  code: "INVALID_TOKEN",
  challenge: { error: "invalid_token", description: expect.any(String) },
};

async function signIn() {
  const person = await newPerson(opened);
  const { accounts } = opened;
  const again = () => accounts.login({ username: person.email, password: PASSWORD }, from(), accounts.tokens.open);
  return { ...person, again, pair: await again() };
}
const refresh = (token: string, retryKey?: string) =>
  opened.accounts.tokens.refresh(token, from(), retryKey ? { retryKey } : {});
const sql = (statement: string, ...values: unknown[]) => opened.owner.query(statement, values);

describe("a refresh", () => {
  test("returns another pair of the same user", async () => {
    const { userId, pair } = await signIn();
    const next = await refresh(pair.refreshToken);
    expect(claimsOf(next.accessToken)).toMatchObject({ sub: userId, name: "Ada", role: "authenticated" });
    expect(next.refreshToken).not.toBe(pair.refreshToken);
    await expect(refresh(next.refreshToken)).resolves.toBeTruthy();
  });

  test("of a used token is refused and revokes its family, but no other sign-in", async () => {
    const { userId, pair, again } = await signIn();
    const elsewhere = await again();
    const next = await refresh(pair.refreshToken);
    await expect(refresh(pair.refreshToken)).rejects.toMatchObject(ENDED);
    await expect(refresh(next.refreshToken)).rejects.toMatchObject(ENDED);
    expect(await eventsOf(opened, userId)).toContain("refresh_token.reused");
    await expect(refresh(elsewhere.refreshToken)).resolves.toBeTruthy();
  });

  test("is refused after a logout, which revokes all refresh tokens of that user only", async () => {
    const [ada, bob] = [await signIn(), await signIn()];
    const elsewhere = await ada.again();
    await opened.accounts.tokens.revoke(ada.userId, from());
    for (const { refreshToken } of [ada.pair, elsewhere])
      await expect(refresh(refreshToken)).rejects.toMatchObject(ENDED);
    await expect(refresh(bob.pair.refreshToken)).resolves.toBeTruthy();
    expect(await eventsOf(opened, ada.userId)).toContain("refresh_tokens.revoked");
  });

  test.each([
    [
      "has expired",
      "update auth.refresh_tokens set issued_at = now() - interval '8 days', expires_at = now() where user_id = $1",
    ],
    ["is not stored", "delete from auth.refresh_tokens where user_id = $1"],
    ["is of a disabled account", "select auth.disable_account($1, null)"],
    ["is of a deleted user", "delete from public.users where id = $1"],
  ])("of a token that %s is refused", async (_, statement) => {
    const { userId, pair } = await signIn();
    await sql(statement, userId);
    await expect(refresh(pair.refreshToken)).rejects.toMatchObject(ENDED);
  });

  test("has the current claims of the user", async () => {
    const { userId, pair } = await signIn();
    await sql(
      "insert into auth.permissions (name, description) values ('articles:review', ''), ('articles:pin', ''), ('articles:all', '')",
    );
    await sql("insert into auth.user_permissions (user_id, permission) values ($1, 'articles:review')", userId);
    await sql(
      "insert into auth.role_permissions (role, permission) values ('authenticated', 'articles:pin'), ('admin', 'articles:all')",
    );
    await sql("update public.users set name = 'Ada L.' where id = $1", userId);
    const next = await refresh(pair.refreshToken);
    expect(claimsOf(next.accessToken)).toMatchObject({
      name: "Ada L.",
      permissions: ["articles:pin", "articles:review"],
    });
    await sql("select auth.assign_role($1, 'admin', null)", userId);
    expect(claimsOf((await refresh(next.refreshToken)).accessToken)).toMatchObject({
      role: "admin",
      permissions: ["articles:all", "articles:pin", "articles:review"],
    });
  });

  test("stores only digests of the tokens", async () => {
    const { userId, pair } = await signIn();
    const next = await refresh(pair.refreshToken, "a key");
    const { rows } = await sql(
      "select token_hash, encode(token_hash, 'escape') || coalesce(encode(sealed_answer, 'escape'), '') as text from auth.refresh_tokens where user_id = $1",
      userId,
    );
    expect(rows).toHaveLength(2);
    for (const { text } of rows) {
      for (const token of [pair.refreshToken, next.refreshToken, next.accessToken]) {
        expect(text).not.toContain(token);
        expect(text).not.toContain(token.split(".")[2]);
      }
    }
  });

  test("belongs to one sign-in from the login on, which says when it was refreshed and from where", async () => {
    const { userId, pair, again } = await signIn();
    await again();
    const sessions = async () =>
      (
        await sql(
          `select id, aal, amr, refreshed_at > created_at as refreshed, user_agent, (select count(*)::int from auth.refresh_tokens where family_id = id) as tokens
          from auth.token_sessions where user_id = $1 order by created_at`,
          userId,
        )
      ).rows;
    const before = await sessions();
    expect(before).toMatchObject([
      { aal: 1, amr: [{ method: "password" }], tokens: 1 },
      { aal: 1, amr: [{ method: "password" }], tokens: 1 },
    ]);
    await opened.accounts.tokens.refresh(pair.refreshToken, { ...from(), userAgent: "another tab" });
    expect(await sessions()).toMatchObject([
      { id: before[0].id, user_agent: "another tab", refreshed: true, tokens: 2 },
      { id: before[1].id, tokens: 1 },
    ]);
    const { rows } = await sql(
      "select last_sign_in_at > created_at as later from auth.users where user_id = $1",
      userId,
    );
    expect(rows).toEqual([{ later: true }]);
  });

  test("deletes a few expired tokens, and the sign-ins that they belonged to", async () => {
    const { userId } = await signIn();
    await sql(
      `with families as (
        insert into auth.token_sessions (id, user_id, created_at, refreshed_at)
          select gen_random_uuid(), $1, now() - interval '9 days', now() - interval '9 days' from generate_series(1, 15) returning id
      )
      insert into auth.refresh_tokens (token_hash, family_id, user_id, issued_at, expires_at)
        select sha256(id::text::bytea), id, $1, now() - interval '9 days', now() - interval '2 days' from families`,
      userId,
    );
    const expired = async () =>
      (
        await sql(`select (select count(*)::int from auth.refresh_tokens where expires_at < now() - interval '1 day') as tokens,
          (select count(*)::int from auth.token_sessions where refreshed_at < now() - interval '8 days') as sessions`)
      ).rows[0];
    expect(await expired()).toEqual({ tokens: 15, sessions: 15 });
    await signIn();
    expect(await expired()).toEqual({ tokens: 5, sessions: 5 });
    await signIn();
    expect(await expired()).toEqual({ tokens: 0, sessions: 0 });
  });
});

describe("a refresh with an Idempotency-Key", () => {
  test("returns the same pair when it is repeated", async () => {
    const { pair } = await signIn();
    const next = await refresh(pair.refreshToken, "tab 1");
    expect(await refresh(pair.refreshToken, "tab 1")).toEqual(next);
    expect(await refresh(pair.refreshToken, "tab 1")).toEqual(next);
    await expect(refresh(next.refreshToken)).resolves.toBeTruthy();
  });

  test("returns one pair to two concurrent tabs", async () => {
    const { pair } = await signIn();
    const pairs = await Promise.all(Array.from({ length: 6 }, () => refresh(pair.refreshToken, "the tabs' own")));
    expect(new Set(pairs.map(({ refreshToken }) => refreshToken)).size).toBe(1);
    expect(new Set(pairs.map(({ accessToken }) => accessToken)).size).toBe(1);
  });

  test.each([
    ["another key", "tab 2"],
    ["no key", undefined],
  ])("but a used token with %s ends the family", async (_, key) => {
    const { pair } = await signIn();
    const next = await refresh(pair.refreshToken, "tab 1");
    await expect(refresh(pair.refreshToken, key)).rejects.toMatchObject(ENDED);
    await expect(refresh(next.refreshToken)).rejects.toMatchObject(ENDED);
    await expect(refresh(pair.refreshToken, "tab 1")).rejects.toMatchObject(ENDED);
  });

  test("is not a retry after ten seconds", async () => {
    const { userId, pair } = await signIn();
    await refresh(pair.refreshToken, "tab 1");
    await sql(
      "update auth.refresh_tokens set sealed_until = sealed_until - interval '10 seconds' where user_id = $1",
      userId,
    );
    await expect(refresh(pair.refreshToken, "tab 1")).rejects.toMatchObject(ENDED);
  });

  test("is not a retry after its pair was used, and the pair is deleted then", async () => {
    const { userId, pair } = await signIn();
    const next = await refresh(pair.refreshToken, "tab 1");
    await refresh(next.refreshToken);
    const { rows } = await sql(
      "select from auth.refresh_tokens where user_id = $1 and sealed_answer is not null",
      userId,
    );
    expect(rows).toEqual([]);
    await expect(refresh(pair.refreshToken, "tab 1")).rejects.toMatchObject(ENDED);
  });

  test("is not a retry after a logout", async () => {
    const { userId, pair } = await signIn();
    await refresh(pair.refreshToken, "tab 1");
    await opened.accounts.tokens.revoke(userId, from());
    await expect(refresh(pair.refreshToken, "tab 1")).rejects.toMatchObject(ENDED);
  });
});

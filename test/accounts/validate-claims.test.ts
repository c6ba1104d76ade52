import { afterEach, describe, expect, test, vi } from "vitest";
import { makeSessionReader } from "../../accounts/accounts.ts";
import { makeFindApiKey } from "../../accounts/identity/api-key-lookup.ts";
import type { ValidateClaims } from "../../accounts/identity/authenticator.ts";
import type { Claims } from "../../accounts/identity/claims.ts";
import { makeValidateClaims } from "../../accounts/validate-claims.ts";
import type { AsOwner } from "../../postgres/database/owner-pool.ts";
import { cloneDatabase } from "../database.ts";
import { connect } from "../db/callers.ts";
import { useFixture } from "../fixture.ts";
import { claimsOf, from, newPerson, openAccounts, PASSWORD } from "./open-accounts.ts";

let questions = 0;
const warnings: string[] = [];
const log = { warn: (message: unknown) => void warnings.push(String(message)) };

const opened = useFixture(openAccounts);
afterEach(() => vi.useRealTimers());

function newStates(asOwner: AsOwner = opened.asOwner): ValidateClaims {
  questions = 0;
  return makeValidateClaims({
    asOwner: (work) => {
      questions++;
      return asOwner(work);
    },
    log,
  });
}

async function signIn(email: string, password = PASSWORD): Promise<Claims> {
  const { accounts } = opened;
  return claimsOf((await accounts.login({ username: email, password }, from(), accounts.tokens.open)).accessToken);
}

const sql = (statement: string, ...values: unknown[]) => opened.owner.query(statement, values);

describe("the claims of a user", () => {
  test("are valid while nothing has changed", async () => {
    const { email } = await newPerson(opened);
    expect(await newStates()(await signIn(email))).toBeNull();
  });

  test("are invalid while the account is disabled, and new ones are valid after it is enabled", async () => {
    const { userId, email } = await newPerson(opened);
    const claims = await signIn(email);
    await sql("select auth.disable_account($1, null)", userId);
    expect(await newStates()(claims)).toMatchObject({ kind: "unauthenticated", code: "INVALID_TOKEN" });
    await sql("select auth.enable_account($1, null)", userId);
    expect(await newStates()(claims)).toMatchObject({ kind: "unauthenticated", code: "TOKEN_EXPIRED" });
    expect(await newStates()(await signIn(email))).toBeNull();
  });

  test("are invalid after the account was deleted, also by the user", async () => {
    const { userId, email } = await newPerson(opened);
    const claims = await signIn(email);
    const requests = await connect(opened.database.url);
    await requests.query("begin");
    await requests.query(
      "select set_config('role', 'authenticated', true), set_config('request.jwt.claims', $1, true)",
      [JSON.stringify({ sub: userId, role: "authenticated" })],
    );
    expect((await requests.query("delete from public.users where id = $1", [userId])).rowCount).toBe(1);
    await requests.query("commit");
    await requests.end();
    expect(await newStates()(claims)).toMatchObject({ kind: "unauthenticated", code: "INVALID_TOKEN" });
  });

  test("are invalid after a password change; newer ones are valid, even from the same second", async () => {
    const { userId, email } = await newPerson(opened);
    const { accounts } = opened;
    const before = await signIn(email);
    const change = { currentPassword: PASSWORD, newPassword: "Quartz-Bird-8" };
    const pair = await accounts.changePassword(userId, change, from(), accounts.tokens.open);
    const states = newStates();
    expect(await states(before)).toMatchObject({ kind: "unauthenticated", code: "TOKEN_EXPIRED" });
    expect(await states(claimsOf(pair.accessToken))).toBeNull();
    expect(await states(await signIn(email, "Quartz-Bird-8"))).toBeNull();
  });

  test("are invalid after a role change, also one by SQL; a refresh has the new role", async () => {
    const { userId, email } = await newPerson(opened);
    const { accounts } = opened;
    const { accessToken, refreshToken } = await accounts.login(
      { username: email, password: PASSWORD },
      from(),
      accounts.tokens.open,
    );
    for (const statement of [
      "insert into auth.user_roles (user_id, role) values ($1, 'admin')",
      "update auth.user_roles set granted_at = now() where user_id = $1",
    ]) {
      await sql(statement, userId);
    }
    expect(await newStates()(claimsOf(accessToken))).toMatchObject({ code: "TOKEN_EXPIRED" });
    const asAdmin = await accounts.tokens.refresh(refreshToken, from());
    expect(claimsOf(asAdmin.accessToken).role).toBe("admin");
    expect(await newStates()(claimsOf(asAdmin.accessToken))).toBeNull();
    await sql("delete from auth.user_roles where user_id = $1", userId);
    expect(await newStates()(claimsOf(asAdmin.accessToken))).toMatchObject({ code: "TOKEN_EXPIRED" });
  });
});

describe("the claims of a session", () => {
  /** Signs in by a cookie; returns the claims of a request with it. */
  async function openSession(): Promise<{ readonly userId: string; readonly claims: Claims }> {
    const { accounts } = opened;
    const { userId, email } = await newPerson(opened);
    const { id } = await accounts.login({ username: email, password: PASSWORD }, from(), accounts.sessions.open);
    const caller = await makeSessionReader(accounts.sessions)({ authorization: null, session: id });
    return { userId, claims: caller!.claims };
  }

  test("are valid while the session lives", async () => {
    const { userId, claims } = await openSession();
    expect(await newStates()(claims)).toBeNull();
    await sql("delete from auth.sessions where user_id = $1", userId);
    expect(await newStates()(claims)).toMatchObject({ reason: "sessionEnded" });
  });

  test.each([
    ["role", "select auth.assign_role($1, 'admin', null)"],
    ["permissions", "insert into auth.user_permissions (user_id, permission) values ($1, 'articles:publish')"],
    ["name", "update public.users set name = 'Augusta' where id = $1"],
  ])("are invalid when a request of the session has another %s, though the session lives", async (_, change) => {
    const { userId, claims } = await openSession();
    await sql("insert into auth.permissions values ('articles:publish', '') on conflict do nothing");
    await sql(change, userId);
    expect(await newStates()(claims)).toMatchObject({ reason: "accountChanged", code: "TOKEN_EXPIRED" });
  });

  test("are not valid for an actor with another role", async () => {
    const { userId, claims } = await openSession();
    await sql("select auth.assign_role($1, 'admin', null)", userId);
    const viewed = (role: string) => ({
      role: "authenticated",
      act: { sub: userId, role, session_digest: claims.session_digest },
    });
    expect(await newStates()(viewed("admin"))).toBeNull();
    expect(await newStates()(viewed("authenticated"))).toMatchObject({ reason: "accountChanged" });
  });

  test("do not extend the session when they are checked", async () => {
    const { userId, claims } = await openSession();
    const end =
      "update auth.sessions set last_used_at = now() - interval '20 minutes' where user_id = $1 returning xmin";
    const before = await sql(end, userId);
    expect(await newStates()(claims)).toBeNull();
    expect((await sql("select xmin from auth.sessions where user_id = $1", userId)).rows).toEqual(before.rows);
  });
});

describe("the claims of an API key", () => {
  test.each([
    ["revoked", "update auth.api_keys set revoked_at = now() where id = $1"],
    ["expired", "update auth.api_keys set created_at = now() - interval '1 day', expires_at = now() where id = $1"],
    ["deleted", "delete from auth.api_keys where id = $1"],
    ["of another role", "update auth.api_keys set role = 'anon' where id = $1"],
  ])("are invalid, also for an actor, when the key is %s", async (_, change) => {
    const { userId } = await newPerson(opened);
    const { id, key } = await opened.accounts.apiKeys.create({ role: "authenticated", ownerId: userId });
    const { claims } = (await makeFindApiKey({ asOwner: opened.asOwner, log })(key))!;
    const viewed = { role: "anon", act: claims };
    for (const each of [claims, viewed]) expect(await newStates()(each)).toBeNull();
    await sql(change, id);
    for (const each of [claims, viewed]) expect(await newStates()(each)).toMatchObject({ reason: "apiKeyInvalid" });
  });
});

describe("the claims of an application", () => {
  test.each([
    ["withdrawn", "delete from auth.oauth_grants where id = $1"],
    ["over", "update auth.oauth_grants set granted_at = now() - interval '1 day', expires_at = now() where id = $1"],
  ])("are invalid when the grant is %s", async (_, change) => {
    const { userId, email } = await newPerson(opened);
    await sql(
      `insert into auth.oauth_clients (id, name, redirect_uris, grant_types, auth_method, registration)
        values ('reader', 'Reader', '{https://reader.example.org}', '{authorization_code}', 'none', 'manual')
        on conflict do nothing`,
    );
    const { rows } = await sql(
      `insert into auth.oauth_grants (user_id, client_id, scopes, resource, expires_at)
        values ($1, 'reader', '{read}', 'https://api.example.org', now() + interval '1 day') returning id`,
      userId,
    );
    const claims: Claims = { ...(await signIn(email)), client_id: "reader", oauth_grant_id: rows[0].id };
    expect(await newStates()(claims)).toBeNull();
    await sql(change, rows[0].id);
    expect(await newStates()(claims)).toMatchObject({ reason: "grantEnded", code: "INVALID_TOKEN" });
  });
});

describe("claims of other issuers are valid", () => {
  test.each([
    { role: "anon" },
    { role: "authenticated", sub: "no-number" },
    { role: "authenticated", sub: "999999999" },
    { role: "authenticated", sub: "99999999999999999999" },
    { role: "authenticated", sub: null },
    { role: "authenticated", sub: ["1"] },
    { role: "authenticated", sub: "999999999", iat: 1, api_key: "theirs" },
  ])("%j", async (claims) => {
    expect(await newStates()(claims)).toBeNull();
  });

  test("for a user without an account", async () => {
    const { rows } = await sql("insert into users (name, email) values ('Eve', 'eve@example.org') returning id");
    expect(await newStates()({ sub: rows[0].id, iat: 0 })).toBeNull();
  });

  test("claims without iat, unless the account has ended", async () => {
    const { userId } = await newPerson(opened);
    expect(await newStates()({ sub: userId })).toBeNull();
    await sql("select auth.disable_account($1, null)", userId);
    expect(await newStates()({ sub: userId })).toMatchObject({ code: "INVALID_TOKEN" });
  });
});

describe("Postgres", () => {
  test("is not queried again for less than five seconds", async () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    const { userId, email } = await newPerson(opened);
    const claims = await signIn(email);
    const states = newStates();
    expect(await states(claims)).toBeNull();
    await sql("select auth.disable_account($1, null)", userId);
    expect(states(claims)).toBeNull();
    expect(questions).toBe(1);
    vi.advanceTimersByTime(4_500);
    expect(await states(claims)).toMatchObject({ code: "INVALID_TOKEN" });
  });

  test("is queried once for a thousand users", async () => {
    const states = newStates();
    await Promise.all(Array.from({ length: 1_000 }, (_, n) => states({ sub: String(n + 1_000_000) })));
    expect(questions).toBe(1);
  });

  test("without accounts makes all claims valid", async () => {
    const empty = await cloneDatabase("empty");
    const client = await connect(empty.ownerUrl);
    const states = newStates((work) => work(client));
    expect(await states({ sub: "1" })).toBeNull();
    await client.query("create schema auth");
    expect(await newStates((work) => work(client))({ sub: "1" })).toBeNull();
    await client.end();
    await empty.drop();
  });

  test("without the privileges makes all claims valid and logs a warning once", async () => {
    const login = await connect(opened.database.url);
    const states = newStates((work) => work(login));
    expect(await states({ sub: "1" })).toBeNull();
    expect(await states({ sub: "2" })).toBeNull();
    expect(warnings).toEqual([expect.stringContaining("OWNER_DATABASE_URL")]);
    await login.end();
  });

  test("may be unavailable, which is an error", async () => {
    const states = newStates(() => Promise.reject(new Error("away")));
    await expect(states({ sub: "1" })).rejects.toThrow("away");
  });
});

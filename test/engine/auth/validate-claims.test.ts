import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { makeValidateClaims, type ValidateClaims } from "../../../engine/auth/validate-claims.ts";
import type { Claims } from "../../../engine/caller/claims.ts";
import type { AsOwner } from "../../../engine/database/as-owner.ts";
import { cloneDatabase } from "../../database.ts";
import { connect } from "../../db/callers.ts";
import { claimsOf, from, newPerson, type Opened, openAccounts, PASSWORD } from "./open-accounts.ts";

let opened: Opened;
let questions = 0;
const warnings: string[] = [];
const log = { warn: (message: unknown) => void warnings.push(String(message)) };

beforeAll(async () => {
  opened = await openAccounts();
});
afterAll(() => opened.close());
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
  test("are good as long as nothing has happened", async () => {
    const { email } = await newPerson(opened);
    expect(await newStates()(await signIn(email))).toBeNull();
  });

  test("end with an account that is disabled, and are good again when it is enabled and signed in to anew", async () => {
    const { userId, email } = await newPerson(opened);
    const claims = await signIn(email);
    await sql("select auth.disable_account($1, null)", userId);
    expect(await newStates()(claims)).toMatchObject({ status: 401, code: "INVALID_TOKEN" });
    await sql("select auth.enable_account($1, null)", userId);
    expect(await newStates()(claims)).toMatchObject({ status: 401, code: "TOKEN_EXPIRED" });
    expect(await newStates()(await signIn(email))).toBeNull();
  });

  test("end with an account that is deleted, by the user too", async () => {
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
    expect(await newStates()(claims)).toMatchObject({ status: 401, code: "INVALID_TOKEN" });
  });

  test("end with the password that was changed, and those from after it are good, in the same second too", async () => {
    const { userId, email } = await newPerson(opened);
    const { accounts } = opened;
    const before = await signIn(email);
    const change = { currentPassword: PASSWORD, newPassword: "Quartz-Bird-8" };
    const pair = await accounts.changePassword(userId, change, from(), accounts.tokens.open);
    const states = newStates();
    expect(await states(before)).toMatchObject({ status: 401, code: "TOKEN_EXPIRED" });
    expect(await states(claimsOf(pair.accessToken))).toBeNull();
    expect(await states(await signIn(email, "Quartz-Bird-8"))).toBeNull();
  });

  test("end with the role that was changed, by a DBA in SQL too; a refresh names the new one", async () => {
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

describe("claims that are not ours to judge are good", () => {
  test.each([
    { role: "anon" },
    { role: "authenticated", sub: "no-number" },
    { role: "authenticated", sub: "999999999" },
    { role: "authenticated", sub: "99999999999999999999" },
    { role: "authenticated", sub: null },
    { role: "authenticated", sub: ["1"] },
  ])("%j", async (claims) => {
    expect(await newStates()(claims)).toBeNull();
  });

  test("those of a user without an account", async () => {
    const { rows } = await sql("insert into users (name, email) values ('Eve', 'eve@example.org') returning id");
    expect(await newStates()({ sub: rows[0].id, iat: 0 })).toBeNull();
  });

  test("those that do not say when they were issued, unless the account has ended", async () => {
    const { userId } = await newPerson(opened);
    expect(await newStates()({ sub: userId })).toBeNull();
    await sql("select auth.disable_account($1, null)", userId);
    expect(await newStates()({ sub: userId })).toMatchObject({ code: "INVALID_TOKEN" });
  });
});

describe("Postgres", () => {
  test("is not asked again for some seconds, less than the five in which a disabled account ends", async () => {
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

  test("is asked one question about a thousand users", async () => {
    const states = newStates();
    await Promise.all(Array.from({ length: 1_000 }, (_, n) => states({ sub: String(n + 1_000_000) })));
    expect(questions).toBe(1);
  });

  test("without accounts has nothing to say", async () => {
    const empty = await cloneDatabase("empty");
    const client = await connect(empty.ownerUrl);
    const states = newStates((work) => work(client));
    expect(await states({ sub: "1" })).toBeNull();
    await client.query("create schema auth");
    expect(await newStates((work) => work(client))({ sub: "1" })).toBeNull();
    await client.end();
    await empty.drop();
  });

  test("may be closed to who asks, which is told once", async () => {
    const login = await connect(opened.database.url);
    const states = newStates((work) => work(login));
    expect(await states({ sub: "1" })).toBeNull();
    expect(await states({ sub: "2" })).toBeNull();
    expect(warnings).toEqual([expect.stringContaining("OWNER_DATABASE_URL")]);
    await login.end();
  });

  test("may be away, which is no answer", async () => {
    const states = newStates(() => Promise.reject(new Error("away")));
    await expect(states({ sub: "1" })).rejects.toThrow("away");
  });
});

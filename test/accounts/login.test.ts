import { describe, expect, test, vi } from "vitest";
import { makeAccounts } from "../../accounts/accounts.ts";
import { verifyToken } from "../../accounts/identity/tokens.ts";
import { makePasswords } from "../../accounts/passwords.ts";
import { errorCodeOf } from "../../http/http-error.ts";
import type { ApiError } from "../../runtime/errors.ts";
import { useFixture } from "../fixture.ts";
import { newAddress } from "../new-address.ts";
import { until } from "../until.ts";
import { argon2Runs } from "./argon2-runs.ts";
import {
  CONFIG,
  claimsOf,
  eventsOf,
  from,
  KEYS,
  newEmail,
  newPerson,
  openAccounts,
  PASSWORD,
} from "./open-accounts.ts";

const opened = useFixture(openAccounts);

const parseErrorOf = (attempt: Promise<unknown>) =>
  attempt.then(
    () => expect.unreachable(),
    (error) => error,
  );
const login = (username: string, password = PASSWORD, clientInfo = from()) =>
  opened.accounts.login({ username, password }, clientInfo, opened.accounts.tokens.open);

describe("a registration", () => {
  test("creates a user and an account and signs in", async () => {
    const email = newEmail();
    const { accounts } = opened;
    const account = { name: "Ada", email, age: 36, password: PASSWORD };
    const { user, opened: pair } = await accounts.register(account, from(), accounts.tokens.open);
    expect(user).toMatchObject({ id: expect.any(Number), name: "Ada", email, age: 36 });
    expect(claimsOf(pair.accessToken)).toMatchObject({ sub: String(user.id), name: "Ada", role: "authenticated" });
    expect(await eventsOf(opened, String(user.id))).toEqual(["account.created", "refresh_token.created"]);
    await expect(login(email)).resolves.toMatchObject({ tokenType: "Bearer" });
  });

  test("uses the e-mail address as the user name by default", async () => {
    const { email } = await newPerson(opened, { username: "ada-lovelace" });
    await expect(login("ada-lovelace")).resolves.toBeTruthy();
    await expect(login("ADA-Lovelace")).resolves.toBeTruthy();
    await expect(login(email.toUpperCase())).resolves.toBeTruthy();
  });

  test.each([
    ["an e-mail address", (email: string) => ({ email: email.toUpperCase() }), "email"],
    ["a user name", () => ({ username: "TAKEN-name" }), "username"],
  ])("with a taken %s is refused at its field, and leaves nothing behind", async (_, change, field) => {
    const { accounts, owner } = opened;
    const { email } = await newPerson(opened, { username: `taken-${field === "email" ? "mail" : "name"}` });
    const count = async () => (await owner.query("select count(*)::int as n from users")).rows[0].n;
    const before = await count();
    const account = { name: "Eve", email: newEmail(), password: PASSWORD, ...change(email) };
    const error = await parseErrorOf(accounts.register(account, from(), accounts.tokens.open));
    expect(error).toMatchObject({ code: "TAKEN", detail: field });
    expect(await count()).toBe(before);
  });

  test.each([
    [{ username: "somebody@example.org" }, "username"],
    [{ username: "with space" }, "username"],
    [{ username: "with:colon" }, "username"],
    [{ username: "x".repeat(255) }, "username"],
    [{ email: "no address" }, "email"],
    [{ name: " " }, "name"],
    [{ age: 200 }, "age"],
  ])("%o is refused by its field", async (change, field) => {
    const account = { name: "Eve", email: newEmail(), password: PASSWORD, ...change };
    const error = await parseErrorOf(opened.accounts.register(account, from(), opened.accounts.tokens.open));
    expect(error).toMatchObject({ code: "WRONG", detail: field });
  });

  test("refuses a weak password with its faults before any query", async () => {
    const account = { name: "Eve", email: newEmail(), password: "password" };
    const error = await parseErrorOf(opened.accounts.register(account, from(), opened.accounts.tokens.open));
    expect(error).toMatchObject({ kind: "invalid", code: "VALIDATION_ERROR" });
    expect(error.details).toContainEqual({ field: "password", message: expect.stringContaining("upper-case") });
  });
});

describe("a login", () => {
  test("returns the claims of the contract", async () => {
    const { userId, email } = await newPerson(opened);
    const before = Math.floor(Date.now() / 1000) - 1;
    const { accessToken, refreshToken, expiresIn, tokenType } = await login(email);
    expect({ expiresIn, tokenType }).toEqual({ expiresIn: 3600, tokenType: "Bearer" });
    const claims = claimsOf(accessToken);
    expect(Object.keys(claims)).toEqual(["sub", "name", "role", "permissions", "iat", "exp", "iss", "sid"]);
    expect(claims).toMatchObject({
      sub: userId,
      name: "Ada",
      role: "authenticated",
      permissions: [],
      iss: "content-service",
      sid: expect.stringMatching(/^[\da-f-]{36}$/),
    });
    expect(claims.iat).toBeGreaterThanOrEqual(before);
    expect(claims.exp).toBe((claims.iat as number) + 3600);
    expect(verifyToken(accessToken, { keys: KEYS, audience: null }).claims).toEqual(claims);

    const refresh = claimsOf(refreshToken);
    expect(refresh).toMatchObject({ sub: userId, type: "refresh", jti: expect.any(String), iss: "content-service" });
    expect((refresh.exp as number) - (refresh.iat as number)).toBe(7 * 86_400);
  });

  test("returns the same error for a wrong password and an unknown user", async () => {
    const { email } = await newPerson(opened);
    const wrong = await parseErrorOf(login(email, "Another-Boat-8"));
    const unknown = await parseErrorOf(login(newEmail()));
    expect(wrong).toMatchObject({
      kind: "unauthenticated",
      code: "INVALID_CREDENTIALS",
      challenge: { error: null },
    });
    expect(unknown).toEqual(wrong);
  });

  test("takes the same time for a wrong password and an unknown user: one hash and as many queries", async () => {
    const { email } = await newPerson(opened);
    const connect = vi.spyOn(opened.owner, "connect");
    const costOf = async (name: string) => {
      connect.mockClear();
      const hashes = await argon2Runs(() => parseErrorOf(login(name, "Another-Boat-8")));
      return { hashes, questions: connect.mock.calls.length };
    };
    const known = await costOf(email);
    expect(known.hashes).toBe(1);
    expect(await costOf(newEmail())).toEqual(known);
    connect.mockRestore();
  });

  test("refuses any password of a user without one", async () => {
    const { userId, email } = await newPerson(opened);
    await opened.owner.query("update auth.users set password_hash = null where user_id = $1", [userId]);
    for (const password of ["", PASSWORD, "null"]) {
      expect(await parseErrorOf(login(email, password))).toMatchObject({ code: "INVALID_CREDENTIALS" });
    }
  });

  test("reports a disabled account only with the right password", async () => {
    const { userId, email } = await newPerson(opened);
    await opened.owner.query("select auth.disable_account($1, null)", [userId]);
    expect(await parseErrorOf(login(email))).toMatchObject({ kind: "forbidden", code: "ACCOUNT_DISABLED" });
    expect(await parseErrorOf(login(email, "Another-Boat-8"))).toMatchObject({
      kind: "unauthenticated",
      code: "INVALID_CREDENTIALS",
    });
    await opened.owner.query("select auth.enable_account($1, null)", [userId]);
    await expect(login(email)).resolves.toBeTruthy();
  });

  test("refuses an over-long password for any user", async () => {
    const { email } = await newPerson(opened);
    for (const name of [email, newEmail()]) {
      expect(await parseErrorOf(login(name, "x".repeat(1025)))).toMatchObject({
        kind: "invalid",
        code: "VALIDATION_ERROR",
      });
    }
  });

  test("renews a hash with older parameters", async () => {
    const { userId, email } = await newPerson(opened);
    const old = "$argon2id$v=19$m=8192,t=1,p=1$c2FsdHNhbHRzYWx0$";
    const { hashLike } = await import("../../accounts/passwords.ts");
    const hash = await hashLike(`${old}${Buffer.alloc(32).toString("base64").replace("=", "")}`, PASSWORD);
    await opened.owner.query("update auth.users set password_hash = $2 where user_id = $1", [userId, hash]);
    await login(email);
    const { rows } = await opened.owner.query("select password_hash from auth.users where user_id = $1", [userId]);
    expect(rows[0].password_hash).toMatch(/^\$argon2id\$v=19\$m=64,t=1,p=1\$/);
    await expect(login(email)).resolves.toBeTruthy();
  });

  test("refuses a password that was changed during the comparison", async () => {
    const { userId, email } = await newPerson(opened);
    const { owner } = opened;
    const holder = await owner.connect();
    await holder.query("begin");
    await holder.query("select auth.lock_account($1)", [userId]);
    const attempt = parseErrorOf(login(email));
    await until(async () => {
      const { rows } = await owner.query(
        "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
      return rows.length > 0;
    });
    await holder.query("update auth.users set password_hash = '$new' where user_id = $1", [userId]);
    await holder.query("commit");
    holder.release();
    expect(await attempt).toMatchObject({ code: "INVALID_CREDENTIALS" });
  });
});

describe("while strangers sign in from ever new addresses", () => {
  const countersOf = async (address: string | null) =>
    (await opened.owner.query("select from auth.login_throttle where key like '%' || $1", [address])).rows.length;

  test("a login from where the user has signed in before goes first, and strangers are refused before any work", async () => {
    const { email } = await newPerson(opened);
    const home = newAddress();
    // Addresses of different ranges.
    const strangers = Array.from({ length: 20 }, (_, n) => `172.16.${n}.1`);
    await login(email, PASSWORD, from(home));
    const passwords = makePasswords({
      parameters: { memory: 64, passes: 1, parallelism: 1 },
      concurrency: 1,
      maxWaiting: 8,
    });
    const everyone = Promise.withResolvers<void>();
    const begun: string[] = [];
    let came = 0;
    const { asOwner } = opened;
    const accounts = makeAccounts({
      asOwner,
      keys: KEYS,
      config: CONFIG,
      // Logins that have begun wait until all have come, so that the number of waiting ones does not depend on the machine.
      passwords: {
        ...passwords,
        makeLoginLimiter: () => {
          const limited = passwords.makeLoginLimiter();
          return (requester, work) => {
            const served = limited(requester, async () => {
              begun.push(requester.isKnown ? "known" : "stranger");
              await everyone.promise;
              return work();
            });
            came += 1;
            if (came === strangers.length + 1) everyone.resolve();
            return served;
          };
        },
      },
      siteUrl: () => "http://127.0.0.1",
    });
    const order: string[] = [];
    const signIn = async (name: string, username: string, address: string) => {
      const opens = accounts.login({ username, password: PASSWORD }, from(address), accounts.tokens.open);
      const outcome = await opens.then(
        () => "accepted",
        ({ kind }: ApiError) => kind,
      );
      order.push(`${name} ${outcome}`);
    };
    await Promise.all([
      ...strangers.map((address) => signIn("stranger", newEmail(), address)),
      signIn("known", email, home),
    ]);
    // Two were being served, and four could wait.
    expect(order.slice(0, 14)).toEqual(Array(14).fill("stranger unavailable"));
    expect(begun).toEqual(["stranger", "stranger", "known", ...Array(4).fill("stranger")]);
    expect(order.slice(14).toSorted()).toEqual(["known accepted", ...Array(6).fill("stranger unauthenticated")]);
    const counted = await Promise.all(strangers.map(countersOf));
    expect(counted.filter((count) => count > 0)).toHaveLength(6);
  });
});

describe("the throttle", () => {
  const fail = (name: string, clientInfo = from()) => parseErrorOf(login(name, "Another-Boat-8", clientInfo));

  test("blocks a user from an address after five failures for the rest of 15 minutes", async () => {
    const { email } = await newPerson(opened);
    const here = from();
    for (let n = 0; n < 5; n++) expect(await fail(email, here)).toMatchObject({ kind: "unauthenticated" });
    const refused = await parseErrorOf(login(email, PASSWORD, here));
    expect(refused).toMatchObject({ kind: "rateLimited", code: "TOMNY" });
    expect(errorCodeOf(refused)).toBe("RATE_LIMITED");
    expect(refused.retryAfterSeconds).toBeGreaterThan(850);
    expect(refused.retryAfterSeconds).toBeLessThanOrEqual(900);

    await expect(login(email, PASSWORD, from())).resolves.toBeTruthy();
    expect(await parseErrorOf(login(email, PASSWORD, here))).toMatchObject({ kind: "rateLimited" });
    await opened.owner.query(
      "update auth.login_throttle set window_started_at = window_started_at - interval '15 minutes'",
    );
    await expect(login(email, PASSWORD, here)).resolves.toBeTruthy();
  });

  test("applies to unknown users too", async () => {
    const [name, here] = [newEmail(), from()];
    for (let n = 0; n < 5; n++) expect(await fail(name, here)).toMatchObject({ kind: "unauthenticated" });
    expect(await fail(name, here)).toMatchObject({ kind: "rateLimited" });
  });

  test("counts an account once for all its names in any case", async () => {
    const { email } = await newPerson(opened, { username: "two-names" });
    const here = from();
    for (const name of ["two-names", email, "TWO-names", email.toUpperCase(), "two-names"]) {
      expect(await fail(name, here)).toMatchObject({ kind: "unauthenticated" });
    }
    expect(await fail(email, here)).toMatchObject({ kind: "rateLimited" });
  });

  test("resets the count of failures after a success", async () => {
    const { email } = await newPerson(opened);
    const here = from();
    for (let round = 0; round < 3; round++) {
      for (let n = 0; n < 4; n++) expect(await fail(email, here)).toMatchObject({ kind: "unauthenticated" });
      await login(email, PASSWORD, here);
    }
  });

  test("blocks an address after fifty failures of any users; an IPv6 network counts as one address", async () => {
    const { email } = await newPerson(opened);
    const sql =
      "select auth.count_attempt('spray-' || n, ('2001:db8:1:2::' || to_hex(n))::inet) as wait from generate_series(1, 52) n";
    const { rows } = await opened.owner.query<{ wait: number }>(sql);
    // Those attempts are still being made: it is worth asking again soon.
    expect(rows.map(({ wait }) => wait)).toEqual([...Array(50).fill(0), 1, 1]);
    await opened.owner.query(
      "select auth.end_attempt('spray-' || n, '2001:db8:1:2::', 'failed') from generate_series(1, 50) n",
    );
    expect(await parseErrorOf(login(email, PASSWORD, from("2001:db8:1:2::ffff")))).toMatchObject({
      kind: "rateLimited",
    });
    await expect(login(email, PASSWORD, from("2001:db8:1:3::1"))).resolves.toBeTruthy();
  });

  test("blocks an IPv6 site after two hundred failures from any of its networks", async () => {
    const { email } = await newPerson(opened);
    const spray = "('spray-' || n, ('2001:db8:7:' || to_hex(n) || '::1')::inet)";
    const { rows } = await opened.owner.query<{ admitted: number }>(
      `select count(*) filter (where auth.count_attempt${spray} = 0)::int as admitted from generate_series(1, 202) n`,
    );
    expect(rows[0]!.admitted).toBe(200);
    await opened.owner.query(
      `select auth.end_attempt${spray.replace("inet)", "inet, 'failed')")} from generate_series(1, 200) n`,
    );
    expect(await parseErrorOf(login(email, PASSWORD, from("2001:db8:7:ffff::1")))).toMatchObject({
      kind: "rateLimited",
    });
    await expect(login(email, PASSWORD, from("2001:db8:8::1"))).resolves.toBeTruthy();
  });

  describe("after a hundred failures for a user from many addresses", () => {
    const attack = async (home: string) => {
      const { email, userId } = await newPerson(opened);
      await login(email, PASSWORD, from(home));
      await opened.owner.query(
        "select auth.count_attempt($1, ('10.9.8.' || n)::inet), auth.end_attempt($1, ('10.9.8.' || n)::inet, 'failed') from generate_series(1, 100) n",
        [email],
      );
      return { email, userId };
    };

    test("blocks the user at addresses from which the user has not signed in", async () => {
      const { email } = await attack(newAddress());
      expect(await parseErrorOf(login(email))).toMatchObject({ kind: "rateLimited" });
      expect(await parseErrorOf(login(email, PASSWORD, from("10.9.8.1")))).toMatchObject({ kind: "rateLimited" });
    });

    test("accepts the right password from where the user has signed in before", async () => {
      const home = newAddress();
      const { email } = await attack(home);
      await expect(login(email, PASSWORD, from(home))).resolves.toBeTruthy();
    });

    test("allows five failures there, as anywhere", async () => {
      const home = newAddress();
      const { email } = await attack(home);
      for (let n = 0; n < 5; n++) expect(await fail(email, from(home))).toMatchObject({ kind: "unauthenticated" });
      expect(await parseErrorOf(login(email, PASSWORD, from(home)))).toMatchObject({ kind: "rateLimited" });
    });

    test("forgets sign-ins of more than thirty days ago, and does not count those of other users", async () => {
      const [home, elsewhere] = [newAddress(), newAddress()];
      const { email, userId } = await attack(home);
      await login((await newPerson(opened)).email, PASSWORD, from(elsewhere));
      expect(await parseErrorOf(login(email, PASSWORD, from(elsewhere)))).toMatchObject({ kind: "rateLimited" });
      await opened.owner.query("update auth.audit_log set at = at - interval '31 days' where user_id = $1", [userId]);
      expect(await parseErrorOf(login(email, PASSWORD, from(home)))).toMatchObject({ kind: "rateLimited" });
    });
  });

  test("allows no more than five concurrent attempts to fail", async () => {
    const { email } = await newPerson(opened);
    const here = from();
    const kinds = (await Promise.all(Array.from({ length: 20 }, () => fail(email, here)))).map(({ kind }) => kind);
    expect(kinds.filter((kind) => kind === "unauthenticated")).toHaveLength(5);
    expect(kinds.filter((kind) => kind === "rateLimited")).toHaveLength(15);
  });

  test("accepts many concurrent logins with the right password", async () => {
    const { email } = await newPerson(opened);
    const here = from();
    const signIns = Array.from({ length: 12 }, () => login(email, PASSWORD, here));
    await expect(Promise.all(signIns)).resolves.toHaveLength(12);
  });

  test("deletes counters that are zero", async () => {
    const { email } = await newPerson(opened);
    const here = from(newAddress());
    await login(email, PASSWORD, here);
    const { rows } = await opened.owner.query("select * from auth.login_throttle where key like '%' || $1", [
      here.address,
    ]);
    expect(rows).toEqual([]);
  });

  test("counts an attempt as failed if the gateway crashes", async () => {
    const { email } = await newPerson(opened);
    const here = from();
    for (let n = 0; n < 5; n++) {
      await opened.owner.query("select auth.begin_login($1, row($2::inet, null, null, null)::auth.client_info)", [
        email,
        here.address,
      ]);
    }
    const refused = await parseErrorOf(login(email, PASSWORD, here));
    expect([refused.kind, refused.retryAfterSeconds]).toEqual(["rateLimited", 1]);
  });
});

test("the audit log has sign-ins and failures with their addresses, without typed names", async () => {
  const { userId, email } = await newPerson(opened);
  const here = from();
  await parseErrorOf(login(email, "Another-Boat-8", here));
  await parseErrorOf(login("my-password-in-the-wrong-field", "x", here));
  const { rows } = await opened.owner.query(
    "select event, user_id, details from auth.audit_log where request_id = $1 order by id",
    [here.requestId],
  );
  const details = { reason: "password", user_agent: "vitest" };
  expect(rows).toEqual([
    { event: "login.failed", user_id: userId, details },
    { event: "login.failed", user_id: null, details },
  ]);
});

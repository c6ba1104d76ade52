import { describe, expect, test } from "vitest";
import { useContent } from "./content.ts";
import { type Ask, rolledBackAfter } from "./rolled-back.ts";

const content = useContent();
const inAccount = rolledBackAfter(
  content,
  "insert into auth.users (user_id, username, email, password_hash) values (1, 'alice', 'alice@example.org', '$old')",
);

/** An authenticator app that is enabled, with two backup codes. */
async function enable({ value }: Ask): Promise<void> {
  expect(await value("select auth.enroll_factor(1, 'SECRET', null)")).toBe("alice");
  expect(await value("select auth.enable_factor(1, 'SECRET', 100, '{$one,$two}', null)")).toBe(true);
}

describe("an authenticator app", () => {
  test("protects the account once it is enabled, and each code is accepted once", () =>
    inAccount(async (ask) => {
      expect(await ask.value("select auth.has_factor(1)")).toBe(false);
      expect(await ask.value("select auth.use_factor(1, 'SECRET', 101, null, null)")).toBe("none");
      await enable(ask);
      expect(await ask.value("select auth.has_factor(1)")).toBe(true);
      expect(await ask.refusal("select auth.enroll_factor(1, 'OTHER', null)")).toBe("TAKEN");
      expect(await ask.refusal("select auth.enroll_factor(99, 'OTHER', null)")).toBe("NTFND");
      const use = (step: number) => ask.value(`select auth.use_factor(1, 'SECRET', ${step}, null, null)`);
      expect([await use(100), await use(101), await use(101), await use(90)]).toEqual([
        "wrong",
        "used",
        "wrong",
        "wrong",
      ]);
      const useBackup = "select auth.use_factor(1, null, null, '$one', null)";
      expect([await ask.value(useBackup), await ask.value(useBackup)]).toEqual(["used", "wrong"]);
      expect(await ask.value("select auth.use_factor(1, null, null, null, null)")).toBe("missing");
    }));

  test("gets new backup codes for one of its codes, and a wrong one counts as a failed sign-in", () =>
    inAccount(async (ask) => {
      await enable(ask);
      const renew = (step: number) =>
        ask.value(`select auth.renew_backup_codes('alice', 1, 'SECRET', ${step}, null, '{$three}', null)`);
      expect(await renew(100)).toBe("wrong");
      expect(
        await ask.rows("select details ->> 'reason' as reason from auth.audit_log where event = 'login.failed'"),
      ).toEqual([{ reason: "code" }]);
      expect(await renew(101)).toBe("used");
      expect(await ask.rows("select code_hash from auth.mfa_backup_codes")).toEqual([{ code_hash: "$three" }]);
    }));

  test("is disabled with a code, which ends the backup codes", () =>
    inAccount(async (ask) => {
      await enable(ask);
      expect(await ask.value("select auth.disable_factor('alice', 1, 'SECRET', 101, null, null)")).toBe("used");
      expect(await ask.value("select auth.has_factor(1)")).toBe(false);
      expect(await ask.rows("select from auth.mfa_backup_codes")).toEqual([]);
    }));

  test("raises the session whose challenge it passes, and is removed by such a session only", () =>
    inAccount(async (ask) => {
      await ask.rows("select auth.open_tokens(1, sha256('one'), 60, null)");
      const session = await ask.value("select id from auth.token_sessions");
      const added = await ask.rows(
        `select outcome, (factor).id from auth.add_factor(1, 'totp', 'Phone', 'SECRET', '${session}', null)`,
      );
      expect(added).toMatchObject([{ outcome: "added" }]);
      const { id } = added[0]!;
      expect(await ask.value(`select (auth.add_factor_challenge(2, '${id}', null, 60, null)).id`)).toBeNull();
      const challenge = await ask.value(`select (auth.add_factor_challenge(1, '${id}', null, 60, null)).id`);
      const pass = (step: number) =>
        ask.value(
          `select auth.pass_factor('alice', 1, '${session}', '${id}', '${challenge}', ${step}, null, null, null, null)`,
        );
      expect(await ask.value(`select auth.has_second_factor_session(1, '${session}')`)).toBe(false);
      expect([await pass(100), await pass(101)]).toEqual(["passed", "challenge"]);
      expect(await ask.value(`select auth.has_second_factor_session(1, '${session}')`)).toBe(true);
      expect(
        await ask.value(
          "select auth.user_factors(account) -> 0 ->> 'friendly_name' from auth.users as account where user_id = 1",
        ),
      ).toBe("Phone");

      await ask.rows("select auth.open_tokens(1, sha256('two'), 60, null)");
      const other = await ask.value(`select id from auth.token_sessions where id <> '${session}'`);
      const remove = (by: unknown, factor = id) =>
        ask.value(`select auth.remove_factor(1, '${factor}', '${by}', null)`);
      expect(await remove(session, session as string)).toBe("missing");
      expect([await remove(other), await remove(session)]).toEqual(["level", "removed"]);
      expect(await ask.rows(`select aal from auth.token_sessions where id = '${session}'`)).toEqual([{ aal: 1 }]);
    }));

  test("that is the first one ends all sign-ins but the one that verified it, and is lacked by those that come back", () =>
    inAccount(async (ask) => {
      for (const name of ["one", "two"]) await ask.rows(`select auth.open_tokens(1, sha256('${name}'), 60, null)`);
      const [one, two] = (await ask.rows("select id from auth.token_sessions order by created_at")).map(({ id }) => id);
      await ask.rows("select auth.open_session(1, sha256('cookie'), 60, 60, null)");
      const lacks = (id: unknown) => ask.value(`select auth.lacks_second_factor(1, '${id}')`);
      expect([await lacks(one), await lacks(two)]).toEqual([false, false]);
      await ask.rows("select auth.add_federation_code(sha256('code'), 1, null, 60)");
      await ask.rows(
        "insert into auth.mfa_factors (user_id, factor_type, secret, state, enabled_at) values (1, 'totp', 'S', 'enabled', now())",
      );
      await ask.rows(`select auth.end_sign_ins_without_factor(1, '${one}', sha256('other'))`);
      expect([await lacks(one), await lacks(two)]).toEqual([false, true]);
      const live = "select family_id from auth.refresh_tokens where revoked_at is null";
      expect(await ask.rows(live)).toEqual([{ family_id: one }]);
      expect(await ask.rows("select from auth.sessions union all select from auth.federation_codes")).toEqual([]);
      await ask.rows("select auth.open_session(1, sha256('cookie'), 60, 60, null)");
      await ask.rows("select auth.end_sign_ins_without_factor(1, null, sha256('cookie'))");
      expect(await ask.rows("select from auth.sessions")).toHaveLength(1);
    }));

  test("must be proved before the network of a sign-in counts as known, where failures of the account do not", () =>
    inAccount(async (ask) => {
      await enable(ask);
      const info = "row('192.0.2.1', null, null, null)::auth.client_info";
      const isKnown = () => ask.value("select auth.is_known_network(1, '192.0.2.1')");
      await ask.rows(`select auth.open_tokens(1, sha256('one'), 60, ${info}, '{password}')`);
      const session = await ask.value("select id from auth.token_sessions");
      expect(await isKnown()).toBe(false);
      await ask.rows(`select auth.raise_session(1, '${session}', factor) from auth.mfa_factors as factor`);
      await ask.rows(`select auth.continue_tokens(1, '${session}', sha256('two'), 60, ${info})`);
      expect(await isKnown()).toBe(true);
    }));

  test("is deleted by an administrator, and so are the marks of sessions that lacked it", () =>
    inAccount(async (ask) => {
      await enable(ask);
      const id = await ask.value("select id from auth.mfa_factors");
      expect(await ask.value(`select auth.delete_factor_of(2, '${id}', null)`)).toBe(false);
      expect(await ask.value(`select auth.delete_factor_of(1, '${id}', null)`)).toBe(true);
      await ask.rows("insert into auth.mfa_factors (user_id, factor_type, secret) values (1, 'totp', 'NEXT')");
      await ask.rows("select auth.delete_factor(factor, null) from auth.mfa_factors as factor");
      expect(await ask.rows("select from auth.mfa_factors")).toEqual([]);
    }));
});

test("challenges are deleted ten minutes after their end", () =>
  inAccount(async ({ rows }) => {
    await rows(`insert into auth.mfa_challenges (purpose, expires_at) values
      ('passkey_sign_in', now() - interval '11 minutes'), ('passkey_sign_in', now() - interval '9 minutes')`);
    await rows("select auth.delete_expired_challenges()");
    expect(await rows("select from auth.mfa_challenges")).toHaveLength(1);
  }));

describe("a passkey", () => {
  const add =
    "insert into auth.passkeys (user_id, credential_id, public_key) values (1, 'credential', 'key') returning id";

  test("takes a challenge once, and of its own user", () =>
    inAccount(async ({ value }) => {
      const id = await value("select (auth.add_passkey_challenge('passkey_registration', 1, 'text', 60)).id");
      const take = (user: number) =>
        value(`select (auth.take_passkey_challenge('passkey_registration', ${user}, '${id}')).challenge`);
      expect([await take(2), await take(1), await take(1)]).toEqual([null, "text", null]);
    }));

  test("signs in while its counter rises, unless the account is disabled", () =>
    inAccount(async ({ value, rows }) => {
      const id = await value(add);
      const pass = (counter: number) => value(`select auth.pass_passkey(1, '${id}', ${counter}, false, null)`);
      expect([await pass(5), await pass(5), await pass(6)]).toEqual(["passed", "counter", "passed"]);
      expect(await value(`select auth.use_passkey('${id}', 6, true)`)).toBe(false);
      expect(await value(`select auth.pass_passkey(99, '${id}', 7, false, null)`)).toBe("missing");
      await rows("select auth.disable_account(1, null)");
      expect(await pass(8)).toBe("disabled");
    }));

  test("is renamed and removed by its user alone", () =>
    inAccount(async ({ value }) => {
      const id = await value(add);
      const rename = (user: number) => value(`select (auth.rename_passkey(${user}, '${id}', 'Key')).friendly_name`);
      const remove = (user: number) => value(`select auth.remove_passkey(${user}, '${id}', null)`);
      expect([await rename(2), await rename(1)]).toEqual([null, "Key"]);
      expect([await remove(2), await remove(1), await remove(1)]).toEqual([false, true, false]);
    }));
});

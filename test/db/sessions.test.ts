import { describe, expect, test } from "vitest";
import { useContent } from "./content.ts";
import { type Ask, rolledBackAfter } from "./rolled-back.ts";

const content = useContent();
const inAccount = rolledBackAfter(
  content,
  "insert into auth.users (user_id, username, email, password_hash) values (1, 'alice', 'alice@example.org', '$old')",
);
const OPEN = "select auth.open_session(1, sha256('cookie'), 60, 600, null)";

test("a session of a browser is used until it ends, and ends with its logout", () =>
  inAccount(async ({ value, rows }) => {
    await rows(OPEN);
    expect(await rows("select user_id, username from auth.use_session(sha256('cookie'), 60)")).toEqual([
      { user_id: "1", username: "alice" },
    ]);
    expect(await value("select count(*) from auth.live_sessions(array[sha256('cookie'), sha256('other')])")).toBe("1");
    await rows("select auth.close_session(sha256('cookie'), null)");
    expect(await rows("select from auth.use_session(sha256('cookie'), 60)")).toEqual([]);
    expect(await rows("select from auth.live_sessions(array[sha256('cookie')])")).toEqual([]);
  }));

/** Signs in twice by tokens. */
async function signInTwice({ rows }: Ask): Promise<readonly [string, string]> {
  await rows("select auth.open_tokens(1, sha256('one'), 60, null)");
  const [first] = await rows("select id from auth.token_sessions");
  await rows("select auth.open_tokens(1, sha256('two'), 60, null)");
  const [second] = await rows(`select id from auth.token_sessions where id <> '${first!.id}'`);
  return [String(first!.id), String(second!.id)];
}

describe("sign-ins by tokens", () => {
  test("are listed, and end one by one, all others, or by a scope", () =>
    inAccount(async (ask) => {
      const { value, rows } = ask;
      const [one, two] = await signInTwice(ask);
      expect(await value(`select auth.has_token_session(1, '${one}')`)).toBe(true);
      expect(await value(`select auth.has_token_session(2, '${one}')`)).toBe(false);
      expect(await rows("select family_id from auth.list_sign_ins(1, null)")).toHaveLength(2);
      expect(await value(`select auth.end_token_family(1, '${two}', null)`)).toBe(true);
      expect(await value(`select auth.end_token_family(2, '${one}', null)`)).toBe(false);
      expect(await rows(`select * from auth.ended_token_sessions(array['${one}', '${two}']::uuid[])`)).toEqual([
        { ended_token_sessions: two },
      ]);
      await rows(`select auth.sign_out(1, '${one}', 'local', null)`);
      expect(await value(`select auth.has_token_session(1, '${one}')`)).toBe(false);
    }));

  test("end with all access tokens, but for the one that a change of the password keeps", () =>
    inAccount(async (ask) => {
      const { value, rows } = ask;
      const [one, two] = await signInTwice(ask);
      const before = await value("select tokens_valid_from from auth.users where user_id = 1");
      await rows("update auth.users set tokens_valid_from = tokens_valid_from - interval '1 day'");
      await rows("select auth.end_access_tokens(1)");
      expect(Number(await value("select tokens_valid_from from auth.users where user_id = 1"))).toBeGreaterThanOrEqual(
        Number(before),
      );
      await rows(`select auth.change_password(1, '$new', null, '${one}')`);
      expect(await rows(`select id from auth.kept_token_sessions(array['${one}', '${two}']::uuid[])`)).toEqual([
        { id: one },
      ]);
      expect(await value(`select auth.has_token_session(1, '${two}')`)).toBe(false);
      await rows("select auth.end_other_sign_ins(1, sha256('cookie'), null)");
      await rows("select auth.revoke_refresh_tokens(1, null)");
      expect(await rows("select from auth.refresh_tokens where revoked_at is null")).toEqual([]);
    }));

  test("continue with further tokens and rise with a second factor", () =>
    inAccount(async (ask) => {
      const { value, rows } = ask;
      const [one] = await signInTwice(ask);
      await rows(
        "insert into auth.mfa_factors (user_id, factor_type, secret, state, enabled_at) values (1, 'totp', 'S', 'enabled', now())",
      );
      expect(await value(`select auth.raise_session(1, '${one}', factor) from auth.mfa_factors as factor`)).toBe(true);
      expect(await value(`select auth.has_second_factor_session(1, '${one}')`)).toBe(true);
      expect(await value(`select auth.continue_tokens(1, '${one}', sha256('three'), 60, null) ->> 'aal'`)).toBe("aal2");
      expect(await value(`select auth.session_claims(1, '${one}') ->> 'session_id'`)).toBe(one);
      expect(await value("select auth.token_claims(1) ->> 'sub'")).toBe("1");
      expect(await value("select auth.amr_entry('password', 'epoch')")).toEqual({ method: "password", timestamp: 0 });
    }));

  test("repeat the response of a lost refresh to the same Idempotency-Key alone", () =>
    inAccount(async (ask) => {
      await signInTwice(ask);
      await ask.rows("select auth.rotate_refresh_token(sha256('one'), sha256('next'), 60, sha256('key'), null)");
      await ask.rows("select auth.store_retry_response(sha256('one'), sha256('key'), 'sealed', 60)");
      const retry = (key: string) =>
        ask.rows(
          `select outcome from auth.rotate_refresh_token(sha256('one'), sha256('${key}'), 60, sha256('${key}'), null)`,
        );
      expect(await retry("key")).toEqual([{ outcome: "repeated" }]);
    }));
});

describe("an attempt to sign in", () => {
  test("passes with the password that was read, and is counted where it fails", () =>
    inAccount(async ({ value, rows }) => {
      expect(await value("select auth.pass_login('alice', 1, '$old', null, null, null, null)")).toBe("passed");
      expect(await value("select auth.pass_login('alice', 1, '$stale', null, null, null, null)")).not.toBe("passed");
      await rows("select auth.fail_login('alice', 1, 'password', null)");
      expect(
        await rows(
          "select user_id from auth.audit_log where event = 'login.failed' and details ->> 'reason' = 'password'",
        ),
      ).not.toEqual([]);
      await rows("select auth.renew_password_hash(1, '$stale', '$other')");
      await rows("select auth.renew_password_hash(1, '$old', '$fresh')");
      expect(await value("select password_hash from auth.users where user_id = 1")).toBe("$fresh");
      expect(await value("select auth.confirm_password('alice', 1, '$fresh', null)")).toBe(true);
      expect(await value("select auth.confirm_password('alice', 1, '$old', null)")).toBe(false);
    }));

  test("is counted by the user, the address and its network", () =>
    inAccount(async ({ value, rows }) => {
      expect(await value("select auth.network_of('192.0.2.77')")).toBe("192.0.2.77");
      expect(await value("select auth.network_of('2001:db8:1:2:3::4')")).toBe("2001:db8:1:2::/64");
      const scopes = "select string_agg(scope, ' ' order by scope) from auth.login_counters('alice', '2001:db8::1')";
      expect(await value(scopes)).toBe("address pair site user");
      expect(await value("select auth.is_known_network(1, '192.0.2.1')")).toBe(false);
      await rows("select auth.log_event('session.created', 1, row('192.0.2.1', null, null, null)::auth.client_info)");
      expect(await value("select auth.is_known_network(1, '192.0.2.1')")).toBe(true);
    }));
});

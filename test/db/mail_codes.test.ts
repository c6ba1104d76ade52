import { describe, expect, test } from "vitest";
import { useContent } from "./content.ts";
import { type Ask, rolledBackAfter } from "./rolled-back.ts";

const content = useContent();
/** Alice has an account whose address nobody has proved. */
const unproved = rolledBackAfter(
  content,
  "insert into auth.users (user_id, username, password_hash) values (1, 'alice', '$old')",
);
const proved = (work: (ask: Ask) => Promise<void>) =>
  unproved(async (ask) => {
    await ask.rows("update auth.users set verified_email = 'alice@example.org' where user_id = 1");
    await work(ask);
  });
const ACCOUNT = "(select account from auth.users as account where user_id = 1)";

describe("a link", () => {
  test("verifies the address, which is the first proof of it", () =>
    unproved(async ({ value, rows }) => {
      const begin = "select auth.begin_verification(1, sha256('verify'), 60, null)";
      expect([await value(begin), await value(begin)]).toEqual(["alice@example.org", null]);
      expect(await rows("select user_id, email from auth.find_mail_token(sha256('verify'), 'verify')")).toEqual([
        { user_id: "1", email: "alice@example.org" },
      ]);
      const verify = "select auth.verify_email(sha256('verify'), null)";
      expect([await value(verify), await value(verify)]).toEqual(["1", null]);
      expect(await value("select event from auth.audit_log where event = 'account.claimed'")).toBe("account.claimed");
      expect(await value("select password_hash from auth.users where user_id = 1")).toBe("$old");
    }));

  test("sets a password, and ends what was sent before", () =>
    proved(async ({ value, rows }) => {
      expect(await value("select auth.begin_reset('ALICE@example.org', sha256('reset'), 60, null)")).toBe(
        "alice@example.org",
      );
      expect(await value("select auth.begin_reset('nobody@example.org', sha256('none'), 60, null)")).toBeNull();
      expect(await value("select auth.reset_password(sha256('reset'), '$new', null)")).toBe("1");
      expect(await value("select password_hash from auth.users where user_id = 1")).toBe("$new");
      expect(await rows("select from auth.mail_tokens where user_id = 1")).toEqual([]);
    }));

  test("changes the address", () =>
    proved(async ({ value, rows, refusal }) => {
      const begin = (email: string) => `select auth.begin_email_change(1, '${email}', sha256('change'), 60, null)`;
      expect(await refusal(begin("bob@example.org"))).toBe("TAKEN");
      expect(await refusal(begin("alice@example.org"))).toBe("WRONG");
      expect(await value(begin("new@example.org"))).toBe("alice@example.org");
      expect(await rows("select * from auth.change_email(sha256('change'), null)")).toEqual([
        { user_id: "1", previous_email: "alice@example.org" },
      ]);
      expect(await value("select email from public.users where id = 1")).toBe("new@example.org");
      expect(await value("select auth.own_email(account) from auth.users as account where user_id = 1")).toBe(
        "new@example.org",
      );
    }));

  test("of a sign-up gives an unproved account its password and name", () =>
    unproved(async ({ value }) => {
      const begin = `select auth.begin_sign_up('alice@example.org', '{"password_hash": "$mine", "name": "Alice B."}', sha256('begin'), 60, null)`;
      expect(await value(begin)).toBe("alice@example.org");
      expect(await value("select auth.verify_email(sha256('begin'), null)")).toBe("1");
      expect(await value("select password_hash from auth.users where user_id = 1")).toBe("$mine");
      expect(await value("select name from public.users where id = 1")).toBe("Alice B.");
      expect(await value(begin)).toBeNull();
    }));
});

describe("a code", () => {
  const add = (purpose: string, code: string, email = "alice@example.org", newEmail = "null") =>
    `select auth.add_mail_code(sha256('${purpose}'), sha256('${code}'), '${purpose}', 1, '${email}', ${newEmail}, null, 60)`;
  const use = (code: string, purpose: string, email = "alice@example.org") =>
    `select outcome from auth.use_mail_code('${email}', sha256('${code}'), '{${purpose}}', null)`;

  test("signs in once, and is spent after five wrong ones", () =>
    proved(async ({ value, rows }) => {
      await rows(add("magiclink", "123456"));
      expect([
        await value(use("000000", "magiclink")),
        await value(use("123456", "magiclink")),
        await value(use("123456", "magiclink")),
      ]).toEqual(["expired", "passed", "expired"]);
      await rows(add("magiclink", "654321"));
      await rows("update auth.mail_tokens set attempts = 5");
      expect(await value(use("654321", "magiclink"))).toBe("expired");
      expect(
        await value("select outcome from auth.use_mail_link(sha256('magiclink'), '{magiclink}', false, null)"),
      ).toBe("passed");
    }));

  test("of both addresses confirms a change, which can be cancelled before", () =>
    proved(async ({ value, rows }) => {
      await rows(add("email_change_current", "111111", "alice@example.org", "'new@example.org'"));
      await rows(add("email_change_new", "222222", "new@example.org", "'new@example.org'"));
      expect(await value("select auth.pending_email(1)")).toBe("new@example.org");
      const side = (purpose: string) =>
        value(
          `select auth.confirm_mail_code(token, ${ACCOUNT}, null) from auth.mail_tokens as token where purpose = '${purpose}'`,
        );
      expect([await side("email_change_current"), await side("email_change_new")]).toEqual(["half", "passed"]);
      expect(await value("select email from public.users where id = 1")).toBe("new@example.org");
      await rows(add("email_change_new", "333333", "third@example.org", "'third@example.org'"));
      await rows("select auth.cancel_email_change(1)");
      expect(await value("select auth.pending_email(1)")).toBeNull();
    }));

  test("is of the address that the account has now, unless it is for another one", () =>
    proved(async ({ rows, value }) => {
      await rows(add("magiclink", "1"));
      await rows(add("email_change_new", "2", "new@example.org", "'new@example.org'"));
      const current = `select auth.is_current_address(${ACCOUNT}, token) from auth.mail_tokens as token where purpose = `;
      expect([await value(`${current} 'magiclink'`), await value(`${current} 'email_change_new'`)]).toEqual([
        true,
        true,
      ]);
      await rows("update auth.users set verified_email = null, email = 'other@example.org' where user_id = 1");
      expect([await value(`${current} 'magiclink'`), await value(`${current} 'email_change_new'`)]).toEqual([
        false,
        true,
      ]);
    }));

  test("confirms a change of the password, for the account alone", () =>
    proved(async ({ rows, value }) => {
      await rows(add("reauthentication", "123456"));
      const reauthenticate = (code: string) => value(`select auth.use_reauthentication(1, sha256('${code}'), null)`);
      expect([await reauthenticate("0"), await reauthenticate("123456"), await reauthenticate("123456")]).toEqual([
        false,
        true,
        false,
      ]);
    }));

  test("belongs to one of several sign-ups that wait, or to none", () =>
    unproved(async ({ rows, value }) => {
      expect(await value("select auth.pending_sign_up(1, 'signup')")).toEqual({ password_hash: "$old" });
      await rows(`select auth.add_mail_code(sha256('a'), sha256('1'), 'signup', 1, 'alice@example.org', null, null, 60,
        '{"password_hash": "$first", "name": "One"}')`);
      expect(await value("select has_several_sign_ups from auth.users where user_id = 1")).toBe(true);
      expect(await value("select auth.pending_sign_up(1, 'signup')")).toBeNull();
      await rows(
        "select auth.replace_mail_tokens(1, 'magiclink', null), auth.replace_mail_tokens(1, 'signup', '$first')",
      );
      expect(await rows("select from auth.mail_tokens")).toEqual([]);
    }));

  test("by text message is for the account with that number", () =>
    proved(async ({ rows, value }) => {
      await rows("select auth.set_phone(1, '491701', false)");
      expect(await rows("select user_id, state, purpose from auth.phone_recipient('491701', 'sms_signup')")).toEqual([
        { user_id: "1", state: "found", purpose: "sms_signup" },
      ]);
      expect(await value("select state from auth.phone_recipient('000')")).toBe("absent");
    }));
});

test("a code for tokens is exchanged once, with the verifier of the client that began", () =>
  proved(async ({ value, rows }) => {
    const verifier = "v".repeat(50);
    const flow = await value(`select auth.add_flow_state('${verifier}', 'plain', 'password', null, 60)`);
    const issue = () => value(`select auth.issue_flow_code('${flow}', 1, sha256('code'), 'sealed', 60)`);
    expect([await issue(), await issue()]).toEqual([true, false]);
    const use = (by: string) =>
      rows(`select outcome, user_id, method from auth.use_flow_code(sha256('code'), '${by}', null)`);
    expect(await use("another")).toMatchObject([{ outcome: "verifier", user_id: null }]);
    expect(await use(verifier)).toEqual([{ outcome: "passed", user_id: "1", method: "password" }]);
    expect(await use(verifier)).toMatchObject([{ outcome: "absent" }]);
  }));

describe("the first proof of an address", () => {
  test("ends what whoever entered the address has set up", () =>
    unproved(async ({ value, rows }) => {
      await rows(`
        insert into auth.passkeys (user_id, credential_id, public_key) values (1, 'credential', 'key');
        select auth.create_own_api_key(sha256('key'), 'key_', 1, 'mine', null, null);
        select auth.open_tokens(1, sha256('one'), 60, null);
        update auth.users set is_self_registered = true, raw_user_meta_data = '{"name": "Mallory"}'`);
      await rows("select auth.claim_account(1, null, null)");
      expect(await value("select password_hash from auth.users where user_id = 1")).toBeNull();
      expect(await rows("select from auth.passkeys")).toEqual([]);
      expect(await rows("select from auth.api_keys where revoked_at is null")).toEqual([]);
      expect(await value("select name from public.users where id = 1")).toBe("alice");
      await rows("select auth.claim_profile(1, null)");
      expect(await value("select raw_user_meta_data from auth.users where user_id = 1")).toEqual({});
    }));

  test("may be an administrator's, of an account that somebody made for himself", () =>
    unproved(async ({ value, rows }) => {
      const first = `select auth.is_first_confirmation(${ACCOUNT}, '{"email_confirm": true}')`;
      expect(await value(first)).toBe(true);
      await rows("update auth.users set is_self_registered = false");
      expect(await value(first)).toBe(false);
      await rows("update auth.users set is_self_registered = true");
      expect(await value(`select auth.change_account(1, '{"email_confirm": true}', null, null)`)).toBe(true);
      expect(await value("select password_hash from auth.users where user_id = 1")).toBeNull();
      expect(await value("select auth.change_account(99, '{}', null, null)")).toBe(false);
      await rows(
        `select auth.apply_account_changes(${ACCOUNT}, '{"phone": "491702", "app_metadata": {"plan": "pro"}}', null)`,
      );
      expect(await rows("select phone, raw_app_meta_data from auth.users where user_id = 1")).toEqual([
        { phone: "491702", raw_app_meta_data: { plan: "pro" } },
      ]);
    }));

  test("by a change of address keeps the account's own password", () =>
    unproved(async ({ value, rows }) => {
      await rows(`insert into auth.mail_tokens (token_hash, purpose, user_id, email, new_email, expires_at, password_hash)
        values (sha256('t'), 'email_change_new', 1, 'new@example.org', 'new@example.org', now() + interval '1 hour', '$old')`);
      await rows(`select auth.apply_email_change(${ACCOUNT}, token, null) from auth.mail_tokens as token`);
      expect(await rows("select password_hash, verified_email from auth.users where user_id = 1")).toEqual([
        { password_hash: "$old", verified_email: "new@example.org" },
      ]);
      await rows("select auth.set_confirmed_email(1, 'third@example.org', null)");
      expect(await value("select auth.find_user('THIRD@example.org')")).toBe("1");
    }));
});

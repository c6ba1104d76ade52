import { describe, expect, test } from "vitest";
import { useContent } from "./content.ts";
import { rolledBack, rolledBackAfter } from "./rolled-back.ts";

const content = useContent();
const inAccount = rolledBackAfter(
  content,
  "insert into auth.users (user_id, username, password_hash) values (1, 'alice', '$old')",
);

describe("an account", () => {
  test("is shown to its user, and to clients of Supabase Auth", () =>
    inAccount(async ({ rows, value }) => {
      expect(
        await rows(
          "select name, email, username, role, is_verified, has_password, backup_codes from auth.account_of(1)",
        ),
      ).toEqual([
        {
          name: "Alice",
          email: "alice@example.org",
          username: "alice",
          role: "authenticated",
          is_verified: false,
          has_password: true,
          backup_codes: 0,
        },
      ]);
      expect(await value("select auth.providers_of(1)")).toEqual(["email"]);
      const json = (await value("select auth.user_json(1)")) as { identities: unknown[]; app_metadata: unknown };
      expect(json).toMatchObject({
        aud: "authenticated",
        email: "alice@example.org",
        app_metadata: { provider: "email" },
      });
      expect(await value("select auth.user_identities(account) from auth.users as account where user_id = 1")).toEqual(
        json.identities,
      );
      expect(json.identities).toMatchObject([{ provider: "email" }]);
      expect(await value("select auth.has_uuid_subjects()")).toBe(false);
    }));

  test("is active, disabled or deleted", () =>
    inAccount(async ({ rows, value }) => {
      const states = "select state from auth.account_states('{1}')";
      expect(await value(states)).toBe("active");
      await rows("select auth.disable_account(1, null)");
      expect(await value(states)).toBe("disabled");
      expect(await value("select auth.delete_account(1, false, null)")).toBe(true);
      expect(await value("select auth.delete_account(1, false, null)")).toBe(false);
      expect(await value(states)).toBe("deleted");
      expect(await rows("select from public.users where id = 1")).toEqual([]);
    }));

  test("keeps the metadata that a change does not name, and drops what it sets to null", () =>
    inAccount(async ({ value }) => {
      expect(await value(`select auth.merge_metadata('{"a": 1, "b": 2}', '{"b": null, "c": 3}')`)).toEqual({
        a: 1,
        c: 3,
      });
      expect(await value(`select auth.merge_metadata('{"a": 1}', null)`)).toEqual({ a: 1 });
    }));

  test("is invited, and an administrator is known", () =>
    inAccount(async ({ rows, value }) => {
      await rows("select auth.invite_account(1, null)");
      expect(await value("select invited_at is not null from auth.users where user_id = 1")).toBe(true);
      expect(await value("select auth.has_administrator()")).toBe(false);
      await rows("select auth.assign_role(1, 'admin', null)");
      expect(await value("select auth.has_administrator()")).toBe(true);
    }));

  test("is named and addressed where the users of the application are", () =>
    inAccount(async ({ rows, value, refusal }) => {
      await rows("select auth.rename_user(1, 'Alice B.')");
      await rows("select auth.set_email(1, 'b@example.org')");
      expect(await rows("select name, email from public.users where id = 1")).toEqual([
        { name: "Alice B.", email: "b@example.org" },
      ]);
      expect(await refusal("select auth.rename_user(1, ' ')")).toBe("WRONG");
      expect(await refusal("select auth.set_email(1, 'bob@example.org')")).toBe("TAKEN");
      await rows("select auth.lock_user(1)");
      expect(await value("select (auth.lock_address(1)).username")).toBe("alice");
      expect(await value("select auth.find_user('B@example.org')")).toBe("1");
    }));

  test("is not registered with what a rule forbids, and all faults are told at once", () =>
    inAccount(async ({ rows, value }) => {
      expect(await rows("select field from auth.account_faults(' ', 'x', 200, 'a b')")).toEqual(
        ["name", "email", "age", "username"].map((field) => ({ field })),
      );
      expect(await value("select auth.username_fault('a@b.example', 'c@d.example') is null")).toBe(false);
      expect(await value("select auth.username_fault('ann', 'c@d.example')")).toBeNull();
      expect(await value("select (api.field_error('public.users', 'users_email_key')).message")).toBe(
        "This e-mail address is already registered.",
      );
    }));
});

test("keys are listed to their owner, and revoked once", () =>
  inAccount(async ({ value, rows }) => {
    const id = await value("select auth.create_own_api_key(sha256('key'), 'key_', 1, 'mine', null, null)");
    expect(await rows("select name, role from auth.list_api_keys(1)")).toEqual([
      { name: "mine", role: "authenticated" },
    ]);
    expect(await rows("select from auth.list_api_keys(2)")).toEqual([]);
    const revoke = (owner: string) => value(`select auth.revoke_api_key(${id}, ${owner}, null)`);
    expect([await revoke("2"), await revoke("1"), await revoke("null")]).toEqual([false, true, false]);
  }));

describe("triggers on accounts", () => {
  const triggerFunctions = (table: string) =>
    content.owner
      .query(
        `select tgfoid::regproc::text as name from pg_trigger where tgrelid = '${table}'::regclass and not tgisinternal order by tgname`,
      )
      .then(({ rows }) => rows.map(({ name }) => name));

  test("copy the address, follow the confirmation, and remember a deletion", () =>
    inAccount(async ({ value, rows }) => {
      expect(await triggerFunctions("auth.users")).toEqual([
        "auth.tg_accounts__copy_email",
        "auth.tg_users__follow_changes",
        "auth.tg_users__remember_deletion",
        "auth.tg_users__end_oauth_codes",
      ]);
      expect(await value("select email from auth.users where user_id = 1")).toBe("alice@example.org");
      await rows("update auth.users set verified_email = 'ALICE@example.org' where user_id = 1");
      expect(await value("select email_confirmed_at is not null from auth.users where user_id = 1")).toBe(true);
      await rows("delete from auth.users where user_id = 1");
      expect(await value("select user_id from auth.deleted_accounts")).toBe("1");
    }));

  test("end the tokens of a user whose role changes", () =>
    inAccount(async ({ value, rows }) => {
      expect(await triggerFunctions("auth.user_roles")).toEqual(["auth.tg_user_roles__end_tokens"]);
      await rows("update auth.users set tokens_valid_from = now() - interval '1 day'");
      await rows("insert into auth.user_roles (user_id, role) values (1, 'admin')");
      expect(
        await value("select tokens_valid_from > now() - interval '1 hour' from auth.users where user_id = 1"),
      ).toBe(true);
    }));

  test("guard the address of an account, and rename it with the address", () =>
    inAccount(async ({ value, rows }) => {
      expect(await triggerFunctions("public.users")).toEqual([
        "auth.tg_users__guard_address",
        "content_service.tg__timestamps",
        "auth.tg_users__rename_account",
        "auth.tg_users__rename_account",
      ]);
      await rows("update auth.users set username = 'alice@example.org'");
      await rows("update public.users set email = 'new@example.org' where id = 1");
      expect(await rows("select username, email from auth.users")).toEqual([
        { username: "new@example.org", email: "new@example.org" },
      ]);
      expect(await value("select updated_at > created_at from public.users where id = 1")).toBe(true);
    }));
});

test("USERS_ACCESS decides whether signed-in callers select the addresses of others", () =>
  rolledBack(content.owner, async ({ value, rows }) => {
    const may = "select has_column_privilege('authenticated', 'public.users', 'email', 'select')";
    await rows("select auth.set_users_access('owner')");
    expect([await value("select auth.users_access()"), await value(may)]).toEqual(["owner", false]);
    await rows("select auth.set_users_access('open')");
    expect([await value("select auth.users_access()"), await value(may)]).toEqual(["open", true]);
    await rows("select auth.withhold_addresses()");
    expect(await value(may)).toBe(false);
  }));

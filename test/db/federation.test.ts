import { describe, expect, test } from "vitest";
import { useContent } from "./content.ts";
import { rolledBackAfter } from "./rolled-back.ts";

const content = useContent();
/** Alice's account is linked to a subject of the provider acme. */
const linked = rolledBackAfter(
  content,
  `
      insert into auth.users (user_id, username, password_hash) values (1, 'alice', '$old');
      select auth.add_provider('{"name": "acme", "kind": "oidc", "issuer": "https://id.example.org", "client_id": "us"}', null);
      insert into auth.identities (issuer, subject, user_id) values ('https://id.example.org', 'alice-there', 1)`,
);

describe("a provider", () => {
  test("is listed with its identities, and removed with them", () =>
    linked(async ({ rows, value }) => {
      expect(await rows("select name, title, identities from auth.list_providers()")).toEqual([
        { name: "acme", title: "Acme", identities: "1" },
      ]);
      expect(await rows("select name from auth.list_linked_providers(1)")).toEqual([{ name: "acme" }]);
      const remove = "select auth.remove_provider('acme', null)";
      expect([await value(remove), await value(remove)]).toEqual([true, false]);
      expect(await rows("select from auth.identities")).toEqual([]);
    }));

  test("is unlinked, unless it is the last way to sign in", () =>
    linked(async ({ value, rows }) => {
      const id = await value("select md5(issuer || ' ' || subject)::uuid from auth.identities");
      const unlink = () => value(`select auth.unlink_identity(1, '${id}', null)`);
      await rows("update auth.users set password_hash = null");
      expect(await unlink()).toBe("last");
      await rows("update auth.users set password_hash = '$old'");
      expect([await unlink(), await unlink()]).toEqual(["unlinked", "absent"]);
      expect(await value("select auth.unlink_provider(1, 'acme', null)")).toBe(false);
    }));

  test("makes an anonymous account permanent, with an address that it has verified and nobody else has", () =>
    linked(async ({ rows, value }) => {
      const keep = async (email: string, isVerified: boolean) => {
        await rows(
          "update auth.users set is_anonymous = true, email_confirmed_at = null, verified_email = null where user_id = 1",
        );
        const claims = `{"email": "${email}", "email_verified": ${isVerified}}`;
        await rows(`select auth.keep_anonymous_account(1, acme, '${claims}', null) from auth.providers as acme`);
        return value("select array[is_anonymous::text, verified_email] from auth.users where user_id = 1");
      };
      const { email: taken } = (await rows("select email from public.users where id <> 1 limit 1"))[0]!;
      expect(await keep("new@example.org", false)).toEqual(["false", null]);
      expect(await keep(taken as string, true)).toEqual(["false", null]);
      expect(await keep("not an address", true)).toEqual(["false", null]);
      expect(await keep("new@example.org", true)).toEqual(["false", "new@example.org"]);
    }));

  test("may be that of an imported account", () =>
    linked(async ({ value }) => {
      const uuid = await value("select id from auth.users where user_id = 1");
      const load = (provider: string, user = uuid) =>
        value(
          `select auth.import_identity('{"provider": "${provider}", "user_id": "${user}", "provider_id": "other-there"}')`,
        );
      expect([await load("acme"), await load("acme"), await load("email"), await load("unknown")]).toEqual([
        "imported",
        "known",
        "skipped",
        "no_provider",
      ]);
    }));
});

describe("a sign-in through a provider", () => {
  test("returns once, in the browser that began it", () =>
    linked(async ({ rows }) => {
      await rows(
        `select auth.begin_federation(sha256('state'), sha256('browser'), '{"provider": "acme", "purpose": "sign-in", "mode": "session"}', 60)`,
      );
      const end = (browser: string) =>
        rows(`select mode from auth.end_federation(sha256('state'), sha256('${browser}'), 'acme', 'sign-in')`);
      expect([await end("another"), await end("browser"), await end("browser")]).toEqual([
        [],
        [{ mode: "session" }],
        [],
      ]);
    }));

  test("waits for the second factor of the account", () =>
    linked(async ({ rows, value }) => {
      await rows(`
        select auth.save_federation_login('{"provider": "acme", "user_id": 1, "mode": "session"}', sha256('browser'), 60);
        insert into auth.mfa_factors (user_id, factor_type, secret, state, enabled_at) values (1, 'totp', 'SECRET', 'enabled', now())`);
      const pass = (step: string) =>
        value(`select auth.pass_federated_factor(sha256('browser'), 'alice', 1, 'SECRET', ${step}, null, null)`);
      expect([await pass("null"), await pass("100"), await pass("101")]).toEqual(["code", "passed", "ended"]);
    }));

  test("gives a program a code for its tokens, once", () =>
    linked(async ({ rows, value }) => {
      await rows(
        "select auth.add_federation_code(sha256('code'), 1, 'challenge', 60), auth.add_federation_code(sha256('two'), 1, 'challenge', 60)",
      );
      const use = (code: string, challenge: string) =>
        value(`select outcome from auth.use_federation_code(sha256('${code}'), '${challenge}', null)`);
      expect([await use("two", "wrong"), await use("two", "challenge"), await use("code", "challenge")]).toEqual([
        "wrong",
        "wrong",
        "passed",
      ]);
    }));

  test("ends with the session at the provider, by one message once", () =>
    linked(async ({ rows, value }) => {
      await rows(`
        select auth.open_session(1, sha256('cookie'), 60, 600, null);
        select auth.save_federation_session(sha256('cookie'), 'acme', 'alice-there', 'index', null)`);
      const end = `select auth.end_federation_sessions('acme', 'alice-there', null, 'message', now() + interval '1 hour', null)`;
      expect([await value(end), await value(end)]).toEqual([1, null]);
      expect(await rows("select from auth.sessions")).toEqual([]);
    }));
});

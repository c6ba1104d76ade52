import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { makeAccounts } from "../../accounts/accounts.ts";
import { inOwnerTransaction } from "../../postgres/database/owner-pool.ts";
import { useFixture } from "../fixture.ts";
import { CONFIG, claimsOf, eventsOf, from, KEYS, newPerson, openAccounts } from "./open-accounts.ts";

let userId: string;

const opened = useFixture(() => openAccounts({ claimsHook: "public.access_claims" }));
beforeAll(async () => {
  await opened.owner.query("grant usage on schema public to supabase_auth_admin");
  ({ userId } = await newPerson(opened));
});
beforeEach(() => define("select event"));

/** The hook: an expression or statement of SQL. */
async function define(body: string, language = "sql"): Promise<void> {
  await opened.owner.query(`
    create or replace function public.access_claims(event jsonb) returns jsonb language ${language} as $hook$ ${body} $hook$;
    revoke execute on function public.access_claims from public;
    grant execute on function public.access_claims to supabase_auth_admin`);
}

type Kind = "tokens" | "sessionTokens";
const open = (kind: Kind = "sessionTokens") =>
  inOwnerTransaction(opened.asOwner, (client) =>
    opened.accounts[kind].open(client, userId, from(), { methods: ["magiclink"], aal: 1 }),
  );
const setClaim = (path: string, value: string) => `select jsonb_set(event, '{claims,${path}}', ${value})`;

describe("the function of CLAIMS_HOOK", () => {
  test.each<Kind>(["tokens", "sessionTokens"])(
    "adds and changes claims of %s, also when they are refreshed",
    async (kind) => {
      await define(`select jsonb_set(jsonb_set(event, '{claims,org}', '"acme"'), '{claims,role}', '"admin"')`);
      const pair = await open(kind);
      expect(claimsOf(pair.accessToken)).toMatchObject({ org: "acme", role: "admin", iss: CONFIG.jwtIssuer });
      await define(setClaim("org", "event -> 'authentication_method'"));
      const next = await opened.accounts[kind].refresh(pair.refreshToken, from());
      expect(claimsOf(next.accessToken)).toMatchObject({ org: "token_refresh", role: "authenticated" });
    },
  );

  test("gets the user's uuid, the method and the claims as they would be signed", async () => {
    await define(setClaim("seen", "event"));
    const { seen, ...claims } = claimsOf((await open()).accessToken);
    const { rows } = await opened.owner.query("select id from auth.users where user_id = $1", [userId]);
    expect(seen).toEqual({ user_id: rows[0].id, authentication_method: "magiclink", claims });
  });

  test("may leave out claims that are not required", async () => {
    await define("select event #- '{claims,name}' #- '{claims,permissions}'");
    expect(claimsOf((await open()).accessToken)).not.toHaveProperty("name");
  });

  test("runs with the rights that are granted to supabase_auth_admin alone, and leaves none behind", async () => {
    await define(setClaim("who", "to_jsonb(current_user)"));
    const [who, timeout] = await inOwnerTransaction(opened.asOwner, async (client) => {
      const pair = await opened.accounts.tokens.open(client, userId, from());
      const { rows } = await client.query(
        "select current_user = session_user as same, current_setting('statement_timeout') as timeout",
      );
      expect(rows[0].same).toBe(true);
      return [claimsOf(pair.accessToken).who, rows[0].timeout];
    });
    expect(who).toBe("supabase_auth_admin");
    expect(timeout).toBe((await opened.owner.query("show statement_timeout")).rows[0].statement_timeout);
    await define(setClaim("hash", "(select to_jsonb(password_hash) from auth.users limit 1)"), "sql").catch(() => {});
    await define(
      "begin return jsonb_set(event, '{claims,hash}', (select to_jsonb(password_hash) from auth.users limit 1)); end",
      "plpgsql",
    );
    await expect(open()).rejects.toMatchObject({
      code: "CLAIMS_HOOK_FAILED",
      cause: { message: expect.stringMatching(/permission denied/) },
    });
  });

  test.each([
    [403, "forbidden"],
    [401, "unauthenticated"],
    [400, "invalid"],
    [422, "invalid"],
    [429, "rateLimited"],
    [200, "internal"],
  ])("refuses a sign-in with the status %i, and nothing of it remains", async (status, kind) => {
    await define(`select '{"error": {"http_code": ${status}, "message": "Not from this network"}}'::jsonb`);
    const before = await eventsOf(opened, userId);
    await expect(open()).rejects.toMatchObject({
      kind,
      code: "CLAIMS_HOOK_REJECTED",
      message: "Not from this network",
    });
    expect(await eventsOf(opened, userId)).toEqual(before);
  });

  test("that refuses a refresh leaves the refresh token usable", async () => {
    const pair = await open();
    await define(`select '{"error": {"http_code": 403, "message": "Not now"}}'::jsonb`);
    await expect(opened.accounts.sessionTokens.refresh(pair.refreshToken, from())).rejects.toMatchObject({
      kind: "forbidden",
    });
    await define("select event");
    expect(await opened.accounts.sessionTokens.refresh(pair.refreshToken, from())).toMatchObject({ userId });
  });

  test.each([
    ["another user", setClaim("sub", `'"4711"'`), "changes the claim sub"],
    ["a user id that was not there", setClaim("user_id", `'"1"'`), "changes the claim user_id"],
    ["another sign-in", setClaim("session_id", "to_jsonb(gen_random_uuid())"), "changes the claim session_id"],
    ["a higher level", setClaim("aal", `'"aal2"'`), "changes the claim aal"],
    ["another issuer", setClaim("iss", `'"other"'`), "changes the claim iss"],
    ["an earlier time of issue", setClaim("iat", "'1'"), "changes the claim iat"],
    ["a refresh token", setClaim("type", `'"refresh"'`), "changes the claim type"],
    ["a later end", setClaim("exp", "to_jsonb((event #>> '{claims,exp}')::bigint + 1)"), "extends the claim exp"],
    ["no end", "select event #- '{claims,exp}'", "extends the claim exp"],
    ["no role", "select event #- '{claims,role}'", "claim role"],
    ["a role that is no text", setClaim("role", "'7'"), "claim role"],
    ["no audience", "select event #- '{claims,aud}'", "lacks the claim aud"],
    ["too many claims", setClaim("more", "to_jsonb(repeat('x', 9000))"), "8192 characters"],
    ["no claims", "select '{}'::jsonb", "has no claims"],
    ["null", "select null::jsonb", "not a JSON object"],
    ["a list", "select '[]'::jsonb", "not a JSON object"],
  ])("cannot return %s", async (_what, body, fault) => {
    await define(body);
    await expect(open()).rejects.toMatchObject({
      kind: "internal",
      code: "CLAIMS_HOOK_FAILED",
      message: expect.stringContaining(fault),
    });
  });

  test.each([
    ["raises an exception", "begin raise exception 'broken'; end", "broken"],
    ["takes too long", "begin perform pg_sleep(60); return event; end", "statement timeout"],
  ])("that %s ends the sign-in", async (_what, body, cause) => {
    await define(body, "plpgsql");
    await expect(open()).rejects.toMatchObject({
      code: "CLAIMS_HOOK_FAILED",
      cause: { message: expect.stringContaining(cause) },
    });
  });

  /** A hook that reports who it is after it has tried something, whether or not that was refused. */
  const trying = (attempt: string) => `
    begin
      begin ${attempt} exception when others then null; end;
      return jsonb_set(event, '{claims,who}', to_jsonb(current_user::text));
    end`;

  test.each([
    "reset role;",
    "set role none;",
    "set local role none;",
    "perform set_config('role', 'none', true);",
    "perform set_config('role', session_user, false);",
    "execute 'reset role';",
    "execute 'set local role ' || quote_ident(session_user);",
    "set session authorization default;",
    "execute 'set session authorization ' || quote_ident(session_user);",
    "perform set_config('session_authorization', session_user, true);",
    "commit;",
    "rollback;",
    "execute 'reset all'; reset role;",
    "execute 'discard all';",
    "create table auth.taken (); reset role;",
    "create function auth.taken() returns int language sql return 1;",
    "grant supabase_auth_admin to anon;",
    "perform dblink_exec('', 'select');",
  ])("remains supabase_auth_admin after %s", async (attempt) => {
    await define(trying(attempt), "plpgsql");
    expect(claimsOf((await open()).accessToken)).toMatchObject({ who: "supabase_auth_admin" });
    const { rows } = await opened.owner.query(
      "select to_regclass('auth.taken') as table, to_regproc('auth.taken') as function",
    );
    expect(rows).toEqual([{ table: null, function: null }]);
  });

  const EVIL =
    "create function pg_temp.evil() returns trigger language plpgsql as 'begin reset role; return null; end';";
  test.each([
    [
      "a cursor for after the commit",
      "execute 'declare evil cursor with hold for select current_user';",
      "leaves a cursor open",
    ],
    [
      "a trigger for the commit",
      `${EVIL} create temp table bait (n int);
       create constraint trigger evil after insert on pg_temp.bait deferrable initially deferred
         for each row execute function pg_temp.evil();
       insert into pg_temp.bait values (1);`,
      "within security-definer function",
    ],
    [
      "an empty table with a trigger for the commit",
      `${EVIL} create temp table bait (n int);
       create constraint trigger evil after insert on pg_temp.bait deferrable initially deferred
         for each row execute function pg_temp.evil();`,
      "leaves a deferrable trigger",
    ],
    ["a setting of the session", "perform set_config('search_path', 'public', false);", "changes settings"],
    ["a setting of the transaction", "set local timezone = 'Asia/Tokyo';", "changes settings"],
  ])("cannot leave %s", async (_what, body, cause) => {
    await opened.owner.query(
      "do $$ begin execute format('grant temporary on database %I to public', current_database()); end $$",
    );
    await define(`begin ${body} return event; end`, "plpgsql");
    await expect(open()).rejects.toMatchObject({ cause: { message: expect.stringContaining(cause) } });
    await define("select event");
    expect(await open()).toMatchObject({ userId });
  });

  test("may have settings of its own in the clause SET, which end with it", async () => {
    await define(setClaim("zone", "to_jsonb(current_setting('timezone'))"));
    await opened.owner.query("alter function public.access_claims set timezone = 'Asia/Tokyo'");
    await inOwnerTransaction(opened.asOwner, async (client) => {
      const pair = await opened.accounts.tokens.open(client, userId, from());
      expect(claimsOf(pair.accessToken)).toMatchObject({ zone: "Asia/Tokyo" });
      expect((await client.query("show timezone")).rows[0].TimeZone).not.toBe("Asia/Tokyo");
    });
  });

  test("gains nothing by altering the function of its own role that calls it", async () => {
    await define("begin alter function auth.call_claims_hook security invoker; return event; end", "plpgsql");
    await open();
    await define(trying("reset role;"), "plpgsql");
    await expect(open()).rejects.toMatchObject({
      cause: { message: expect.stringContaining("does not run as supabase_auth_admin") },
    });
    await opened.owner.query("alter function auth.call_claims_hook set role = supabase_auth_admin");
    await expect(open()).rejects.toMatchObject({
      cause: { message: expect.stringContaining("does not keep the role") },
    });
    await opened.owner.query("alter function auth.call_claims_hook security definer reset role");
    expect(claimsOf((await open()).accessToken)).toMatchObject({ who: "supabase_auth_admin" });
  });

  test("that does not exist ends the sign-in; without the setting, none is called", async () => {
    const others = (claimsHook: string | null) =>
      makeAccounts({ asOwner: opened.asOwner, keys: KEYS, config: { ...CONFIG, claimsHook }, siteUrl: () => "" });
    const openWith = (claimsHook: string | null) =>
      inOwnerTransaction(opened.asOwner, (client) => others(claimsHook).tokens.open(client, userId, from()));
    await expect(openWith("public.missing")).rejects.toMatchObject({ code: "CLAIMS_HOOK_FAILED" });
    expect(claimsOf((await openWith(null)).accessToken)).toMatchObject({ role: "authenticated" });
  });
});

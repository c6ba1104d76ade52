import { readFile } from "node:fs/promises";
import { runMigrations } from "graphile-worker";
import type pg from "pg";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../database.ts";
import { GROWING, NOT_GROWING } from "./table-growth.ts";

const database = useDatabase();
beforeAll(() => runMigrations({ connectionString: database.ownerUrl }));
const owner = useClient(database.ownerUrl);
beforeAll(() =>
  owner.query(`
    insert into public.users (name, email) values ('Ada', 'ada@example.org');
    insert into auth.users (user_id, username) values (1, 'ada') on conflict do nothing;
    select auth.add_provider('{"name": "corp", "kind": "oidc", "issuer": "https://corp.example", "client_id": "c"}', null)`),
);
beforeEach(() => owner.query("begin"));
afterEach(() => owner.query("rollback"));

async function count(table: string, condition = "true"): Promise<number> {
  return (await owner.query(`select count(*)::int as n from ${table} where ${condition}`)).rows[0].n;
}

async function bound(name: string, value: number): Promise<void> {
  expect(
    (await owner.query("update content_service.bounds set bound = $2 where name = $1", [name, value])).rowCount,
  ).toBe(1);
}

async function trim(): Promise<void> {
  await owner.query("update content_service.bounds set used_at = '-infinity'; select content_service.trim_tables()");
}

describe("the list of tables", () => {
  test("names each table of the service once: as growing by requests of strangers, or with the reason why it does not", async () => {
    const { rows } = await owner.query(`
      select nspname || '.' || relname as name from pg_class join pg_namespace on pg_namespace.oid = relnamespace
      where relkind in ('r', 'p') and nspname in ('auth', 'api', 'content_service', 'realtime', 'storage', 'graphile_worker')`);
    const listed = [...GROWING.map(({ table }) => table), ...Object.keys(NOT_GROWING)];
    expect(listed.sort()).toEqual(rows.map(({ name }) => name).sort());
  });

  test("names bounds that exist", async () => {
    const { rows } = await owner.query("select name from content_service.bounds");
    const names = new Set(rows.map(({ name }) => name));
    const texts = GROWING.flatMap(({ bound, kept }) => [bound, kept]).join(" ");
    const named = [...texts.matchAll(/`([a-z][^`]* [^`]*)`/g)].map(([, name]) => name);
    expect(named.length).toBeGreaterThan(8);
    for (const name of named) expect(names).toContain(name);
  });

  test("is on the page about limits", async () => {
    const page = await readFile(new URL("../../docs/limits.md", import.meta.url), "utf8");
    const section = page.slice(page.indexOf("## Growth of tables"));
    for (const { table, bound, kept } of GROWING) expect(section).toContain(`- \`${table}\`: ${bound} (${kept})\n`);
  });
});

/** The tests of the other bounds. */
const SHOWN_ELSEWHERE: Readonly<Record<string, string>> = {
  "auth.deleted_accounts": "below: one per account, for a day",
  "auth.federation_codes": "below: the codes of sign-ins by a provider",
  "auth.oauth_authorizations": "test/db/oauth.test.ts",
  "auth.oauth_clients": "test/db/oauth.test.ts",
  "auth.oauth_grants": "test/db/oauth.test.ts",
  "auth.oauth_sessions": "test/db/oauth.test.ts",
  "auth.refresh_tokens": "below: the sessions of a user",
  "auth.token_sessions": "below: the sessions of a user",
  "auth.users": "test/rest-gateway/sign-ups.test.ts",
  "graphile_worker._private_jobs": "test/db/queue.test.ts",
  "content_service.bucket_usage": "test/db/files.test.ts",
  "content_service.files": "test/rest-gateway/storage/storage-js.test.ts",
  "content_service.kept_answer_counts": "test/db/stored_responses.test.ts",
  "content_service.kept_answers": "test/rest-gateway/idempotency/quota.test.ts",
  "content_service.recorded_request_counts": "test/http/observability/request-recorder.test.ts",
  "content_service.recorded_requests": "test/http/observability/request-recorder.test.ts",
  "content_service.tasks": "test/db/queue.test.ts",
  "content_service.unfinished_uploads": "test/db/files.test.ts",
  "content_service.upload_parts": "test/db/files.test.ts",
  "content_service.webhook_deliveries": "below: dead deliveries of a webhook",
  "storage.objects": "test/rest-gateway/storage/storage-js.test.ts",
};

const HASH = "sha256(convert_to(n::text, 'UTF8'))";
const CHALLENGE = "rpad(n::text, 43, 'x')";

/** By table, the call of a request that adds a row for each n. */
const ADD: Readonly<Record<string, string>> = {
  "auth.flow_states": `auth.add_flow_state(${CHALLENGE}, 'plain', 'email', null, 60)`,
  "auth.federation_states": `auth.begin_federation(
    ${HASH}, ${HASH}, '{"provider": "corp", "purpose": "sign-in", "mode": "token"}', 60)`,
  "auth.mfa_challenges": "auth.add_passkey_challenge('passkey_sign_in', null, n::text, 60)",
  "auth.login_throttle": "auth.count_attempt('user' || n, '192.0.2.1')",
  "content_service.rate_limits": "content_service.count_requests(array['address ' || n], array[1], 60)",
  "auth.audit_log": "auth.log_event('login.failed', null, null)",
};

function add(table: string, rows: number, first = 1): Promise<unknown> {
  return owner.query(`select ${ADD[table]} from generate_series($1::integer, $2) as n`, [first, first + rows - 1]);
}

/** Makes a row past its time. */
const EXPIRE: Readonly<Record<string, string>> = {
  "auth.flow_states": "created_at = now() - interval '2 days', expires_at = now() - interval '1 day'",
  "auth.federation_states": "expires_at = now() - interval '1 day'",
  "auth.mfa_challenges": "expires_at = now() - interval '1 day'",
  "auth.login_throttle": "window_started_at = now() - interval '1 day'",
  "content_service.rate_limits": "expire = 0",
  "auth.audit_log": "at = now() - interval '500 days'",
};

describe.each(Object.keys(ADD))("%s", (table) => {
  test("keeps the newest rows within its bound", async () => {
    await trim();
    await bound(`rows of ${table}`, 20);
    await add(table, 60);
    expect(await count(table)).toBeGreaterThan(20);
    await trim();
    expect(await count(table)).toBe(20);
  });

  test("keeps no row past its time, without another request", async () => {
    await add(table, 5);
    await owner.query(`update ${table} set ${EXPIRE[table]}`);
    await trim();
    expect(await count(table)).toBe(0);
  });
});

describe("what is past its time", () => {
  test.each([
    ["auth.mail_tokens", `auth.add_mail_token(${HASH}, 'reset', 1, 'ada@example.org', 60)`],
    ["auth.federation_codes", `auth.add_federation_code(${HASH}, 1, null, 60)`],
    [
      "auth.federation_logins",
      `auth.save_federation_login('{"provider": "corp", "user_id": 1, "mode": "token"}', ${HASH}, 60)`,
    ],
  ])("is deleted from %s", async (table, call) => {
    await owner.query(`select ${call} from generate_series(1, 1) as n`);
    expect(await count(table)).toBe(1);
    await trim();
    expect(await count(table)).toBe(1);
    const { rowCount } = await owner.query(
      "select from pg_attribute where attrelid = $1::regclass and attname = 'created_at' and attnum > 0",
      [table],
    );
    const creation = rowCount ? "created_at = now() - interval '2 days', " : "";
    await owner.query(`update ${table} set ${creation} expires_at = now() - interval '1 day'`);
    await trim();
    expect(await count(table)).toBe(0);
  });
});

describe("the codes of sign-ins by a provider", () => {
  const addCodes = (first: number, last: number) =>
    owner.query(
      `select auth.add_federation_code(${HASH}, 1, null, 60) from generate_series($1::integer, $2::integer) as n`,
      [first, last],
    );

  test("are deleted when they are past their time by the next ones, ten by each, so that a flood keeps those of a minute", async () => {
    await addCodes(1, 60);
    expect(await count("auth.federation_codes")).toBe(60);
    await owner.query("update auth.federation_codes set expires_at = now() - interval '1 second'");
    await addCodes(61, 65);
    expect(await count("auth.federation_codes")).toBe(15);
    await addCodes(66, 67);
    expect(await count("auth.federation_codes")).toBe(7);
    expect(await count("auth.federation_codes", "expires_at < now()")).toBe(0);
  });

  test("end with their use, right or wrong, and with a new password", async () => {
    await addCodes(1, 3);
    const use = (n: number, challenge: string | null) =>
      owner.query(`select auth.use_federation_code(${HASH.replace("n::text", "$1::text")}, $2, null)`, [
        String(n),
        challenge,
      ]);
    await use(1, null);
    await use(2, "wrong");
    expect(await count("auth.federation_codes")).toBe(1);
    await owner.query("select auth.set_password(1, '$new', null)");
    expect(await count("auth.federation_codes")).toBe(0);
  });
});

describe("the sessions of a user", () => {
  const open = (n: number) =>
    owner.query(`select auth.open_tokens(1, ${HASH.replace("n::text", "$1::text")}, 3600, null)`, [String(n)]);

  test("are so many: beyond it the one that was used longest ago ends", async () => {
    await bound("token sessions of a user", 3);
    for (let n = 0; n < 8; n++) await open(n);
    await owner.query("update auth.token_sessions set refreshed_at = created_at");
    const oldest = (await owner.query("select id from auth.token_sessions order by created_at limit 5")).rows;
    await trim();
    expect(await count("auth.token_sessions")).toBe(3);
    expect(await count("auth.refresh_tokens")).toBe(3);
    for (const { id } of oldest) expect(await count("auth.token_sessions", `id = '${id}'`)).toBe(0);
  });

  test("keep so many exchanged tokens each, and the one that is valid", async () => {
    await bound("refresh tokens of a session", 4);
    await open(0);
    const { rows } = await owner.query("select id from auth.token_sessions");
    for (let n = 1; n <= 20; n++) {
      await owner.query("update auth.refresh_tokens set rotated_at = clock_timestamp() where rotated_at is null");
      await owner.query("select auth.add_refresh_token(1, sha256(convert_to($1, 'UTF8')), $2, 3600, null)", [
        String(n),
        rows[0].id,
      ]);
    }
    await trim();
    expect(await count("auth.refresh_tokens")).toBe(4);
    expect(await count("auth.refresh_tokens", "rotated_at is null")).toBe(1);
  });
});

describe("dead deliveries of a webhook", () => {
  test("are so many; pending ones stay", async () => {
    await bound("dead deliveries of a webhook", 5);
    await owner.query(`
      insert into api.webhooks (name, table_name, events, url, role)
        values ('orders', 'public.articles', '{INSERT}', 'https://example.org/hook', 'service_role');
      insert into content_service.webhook_deliveries (webhook_id, type, key, state, recorded_at)
        select id, 'INSERT', n::text, case when n > 12 then 'pending' else 'dead' end, now() - n * interval '1 minute'
        from api.webhooks, generate_series(1, 15) as n`);
    await trim();
    const { rows } = await owner.query(
      "select key from content_service.webhook_deliveries where state = 'dead' order by key::int",
    );
    expect(rows.map(({ key }) => key)).toEqual(["1", "2", "3", "4", "5"]);
    expect(await count("content_service.webhook_deliveries", "state = 'pending'")).toBe(3);
  });
});

/** Calls that one user, or a stranger who names one user, repeats; and how many rows they leave. */
const REPEATED: Readonly<Record<string, readonly [call: string, rows: number]>> = {
  "auth.api_keys": [`auth.create_own_api_key(${HASH}, 'key_', 1, 'key', null, null)`, 50],
  "auth.federation_logins": [
    `auth.save_federation_login('{"provider": "corp", "user_id": 1, "mode": "token"}', sha256('browser'), 60)`,
    1,
  ],
  "auth.federation_replays": ["auth.use_message('https://corp.example', 'message', now() + interval '1 hour')", 1],
  "auth.federation_sessions": [
    `(auth.open_session(1, ${HASH}, 60, 60, null)).username,
      auth.save_federation_session(${HASH}, 'corp', 'ada', null, null)`,
    1,
  ],
  "auth.identities": [
    "auth.link_identity(1, (select corp from auth.providers as corp), 'subject ' || n, now() + interval '1 day', null)",
    50,
  ],
  "auth.mail_tokens": [
    `auth.add_mail_code(${HASH}, ${HASH}, 'signup', 1, 'ada@example.org', null, null, 60,
      jsonb_build_object('password_hash', '$argon2id$' || n))`,
    3,
  ],
  "auth.mfa_backup_codes": [
    "auth.replace_backup_codes(1, array(select n || ' ' || i from generate_series(1, 10) as i))",
    10,
  ],
  "auth.mfa_factors": ["(auth.add_factor(1, 'totp', 'app ' || n, 'secret', null, null)).outcome", 10],
  "auth.passkeys": [
    `(auth.add_passkey(1, jsonb_build_object('credential_id', 'c' || n, 'public_key', '\\x00', 'counter', 0,
      'transports', '{}'::text[], 'is_backup_eligible', false, 'is_backed_up', false), null)).outcome`,
    10,
  ],
  "auth.sessions": [`(auth.open_session(1, ${HASH}, 60, 60, null)).username`, 1],
  "auth.user_roles": ["auth.assign_role(1, 'admin', null)", 1],
};

describe("the rows of one user", () => {
  test.each(Object.entries(REPEATED))(
    "in %s stay within the bound, whatever the user repeats",
    async (table, [call, rows]) => {
      for (let n = 1; n <= 60; n++) {
        await owner.query("savepoint repeated");
        const text = `select ${call.replaceAll(/\bn\b/g, String(n))}`;
        await owner.query(text).catch(async (error: pg.DatabaseError) => {
          expect(error.code, error.message).toBe("WRONG");
          await owner.query("rollback to savepoint repeated");
        });
      }
      expect(await count(table)).toBe(rows);
    },
  );

  test.each([
    [
      "auth.deleted_accounts",
      "insert into auth.deleted_accounts (user_id, deleted_at) values (7, now() - interval '2 days')",
    ],
    [
      "auth.federation_replays",
      "select auth.use_message('https://corp.example', 'message', now() - interval '1 second')",
    ],
    [
      "auth.sessions",
      `select auth.open_session(1, ${HASH.replace("n::text", "'n'")}, 60, 60, null);
      update auth.sessions set created_at = now() - interval '2 days', idle_expires_at = now() - interval '1 second'`,
    ],
  ])("in %s end with their time", async (table, text) => {
    await owner.query(text);
    expect(await count(table)).toBe(1);
    await trim();
    expect(await count(table)).toBe(0);
  });

  test("and of each other table are shown to be bounded where the bound is applied", () => {
    const shown = new Set([...Object.keys(ADD), ...Object.keys(REPEATED), ...Object.keys(SHOWN_ELSEWHERE)]);
    expect(GROWING.map(({ table }) => table).filter((table) => !shown.has(table))).toEqual([]);
  });
});

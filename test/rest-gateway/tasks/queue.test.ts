import { randomUUID } from "node:crypto";
import { createClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { serve } from "../../serve.ts";
import { until } from "../../until.ts";
import { newPerson, openGateways, PASSWORD, type Person } from "../sign-in/gateways.ts";

/** Functions that a DBA might write; `public.enqueue` is that of the documentation. */
const FUNCTIONS = `
  create table public.ledger (id bigint generated always as identity, note text not null, writer text, role text, claims text, interface text);
  alter table public.ledger enable row level security;
  create policy insert_own on public.ledger for insert with check (writer is not distinct from (select auth.uid()::text));
  grant insert on public.ledger to authenticated, service_role;

  create function public.enqueue(
    function text, arguments jsonb default '{}', run_at timestamptz default now(), key text default null
  ) returns uuid
  return api.enqueue(format('public.%I', function), arguments, run_at, key);

  create function public.write_down(note text) returns text language sql set search_path = '' as $$
    insert into public.ledger (note, writer, role, claims, interface) values (
      note, auth.uid()::text, current_user, nullif(current_setting('request.jwt.claims'), ''), current_setting('request.interface')
    );
    select 'written: ' || note
  $$;
  create function public.refuse(note text) returns void language plpgsql set search_path = '' as $$
  begin
    perform public.write_down(note);
    raise exception 'Not today' using errcode = 'WRONG', detail = 'note';
  end $$;
  create function public.forge(note text) returns text language sql set search_path = '' as $$
    insert into public.ledger (note, writer) values (note, '4711'); select 'forged'
  $$;
  create sequence public.attempts;
  create function public.fragile() returns text language plpgsql set search_path = '' as $$
  begin
    if nextval('public.attempts') < 2 then raise serialization_failure; end if;
    return 'the second time';
  end $$;
  grant usage on sequence public.attempts to service_role;
  create function public.change_caller(note text) returns text language plpgsql set search_path = '' as $$
  begin
    perform set_config('request.jwt.claims', '{"sub": "4711"}', true), set_config('role', 'service_role', true);
    return current_user;
  end $$;
  create function public.wait_long() returns void language sql set search_path = '' as 'select pg_sleep(600)';
  create function public.numbers(amount numeric, digits numeric[], document jsonb, out sum numeric, out first numeric, out copy jsonb)
    language sql set search_path = '' as 'select amount, digits[1], document';
  create function public.count_to(last integer) returns setof integer language sql set search_path = '' as 'select generate_series(1, last)';
  create function public.nothing() returns void language sql set search_path = '' as 'select 1';
  grant execute on function public.enqueue, public.write_down, public.refuse, public.forge, public.fragile, public.change_caller,
    public.wait_long, public.numbers, public.count_to, public.nothing to authenticated, service_role;
`;

let ada: Person;
let eve: Person;
const anonKey = jwt.sign({ role: "anon" }, SECRET);

const gateways = useFixture(() => openGateways({ settings: { RATE_LIMIT: "0" } }));
beforeAll(async () => {
  await gateways.owner.query(FUNCTIONS);
  [ada, eve] = [await newPerson(gateways), await newPerson(gateways)];
  for (const service of [gateways.one, gateways.two]) {
    const isServed = async () => (await clientOf(null, service).rpc("enqueue", { function: "nothing" })).status !== 404;
    await until(isServed);
  }
});

function clientOf(person: Person | null, { url } = gateways.one) {
  const headers = person === null ? {} : { Authorization: `Bearer ${person.pair.accessToken}` };
  return createClient(url, anonKey, { global: { headers }, auth: { persistSession: false } });
}

async function enqueue(person: Person, name: string, values: object = {}, options: object = {}): Promise<string> {
  const { data, error } = await clientOf(person).rpc("enqueue", { function: name, arguments: values, ...options });
  expect(error).toBeNull();
  return data;
}

/** Queues a call like a DBA in psql. */
async function enqueueInSql(role: string, ...values: unknown[]): Promise<string> {
  const client = await gateways.owner.connect();
  try {
    await client.query("begin");
    await client.query("select set_config('role', $1, true)", [role]);
    const placeholders = values.map((_, index) => `$${index + 1}`).join(", ");
    const { rows } = await client.query(`select api.enqueue(${placeholders}) as id`, values);
    await client.query("commit");
    return rows[0].id;
  } finally {
    client.release();
  }
}

async function taskOf(id: string) {
  return (await gateways.owner.query("select * from content_service.tasks where id = $1", [id])).rows[0];
}

async function finished(id: string) {
  await until(async () => (await taskOf(id)).finished_at !== null);
  return taskOf(id);
}

async function notesOf(note: string) {
  return (await gateways.owner.query("select * from public.ledger where note = $1", [note])).rows;
}

function look(id: string, { pair }: Person) {
  return gateways.get(`${gateways.two.url}/api/v1/tasks/${id}`, { token: pair.accessToken });
}

describe("a function that a client queues by supabase-js", () => {
  test("runs once as the user, who reads the result from either gateway", async () => {
    const note = randomUUID();
    const id = await enqueue(ada, "write_down", { note });
    await finished(id);
    expect((await look(id, ada)).body).toMatchObject({
      taskId: id,
      status: "done",
      progress: 100,
      result: `written: ${note}`,
    });
    expect((await look(id, eve)).status).toBe(404);
    expect(await notesOf(note)).toMatchObject([
      {
        writer: String(ada.userId),
        role: "authenticated",
        interface: "queue",
        claims: expect.stringContaining('"sub"'),
      },
    ]);
  });

  test("is refused to anonymous callers, and outside of the functions that they may call", async () => {
    const refused = await clientOf(null).rpc("enqueue", { function: "write_down", arguments: { note: "n" } });
    expect(refused).toMatchObject({ status: 401, error: { code: "42501" } });
    for (const name of ["missing", "rls_auto_enable", "pg_catalog.set_config", "content_service.maintain_tasks"]) {
      const answer = await clientOf(ada).rpc("enqueue", { function: name, arguments: {} });
      expect(answer).toMatchObject({ status: 404, error: { code: "NTFND" } });
    }
    const wrong = await clientOf(ada).rpc("enqueue", { function: "write_down", arguments: { text: "n" } });
    expect(wrong).toMatchObject({ status: 400, error: { code: "WRONG", details: "arguments" } });
  });

  test("is bound by the policies of the user", async () => {
    const note = randomUUID();
    const task = await finished(await enqueue(ada, "forge", { note }));
    expect(task).toMatchObject({ status: "failed", error: { status: 403, code: "42501" } });
    expect(await notesOf(note)).toEqual([]);
  });

  test("waits for its time, and is cancelled until then", async () => {
    const id = await enqueue(ada, "nothing", {}, { run_at: "2100-01-01T00:00:00Z" });
    const address = `${gateways.two.url}/api/v1/tasks/${id}`;
    const cancel = (token: string) => gateways.get(address, { method: "DELETE", token });
    expect((await look(id, ada)).body).toMatchObject({ status: "queued" });
    expect((await cancel(eve.pair.accessToken)).status).toBe(404);
    expect((await cancel(ada.pair.accessToken)).status).toBe(204);
    expect((await look(id, ada)).status).toBe(404);
  });

  test.concurrent.each([
    ["was disabled", "select auth.disable_account($1, null)"],
    ["has another role", "select auth.assign_role($1, 'admin', null)"],
  ])("fails with 401 where the account %s meanwhile", async (_, change) => {
    const gone = await newPerson(gateways);
    const note = randomUUID();
    // Accounts that were looked up are looked up again after four seconds.
    const id = await enqueue(gone, "write_down", { note }, { run_at: new Date(Date.now() + 6_000) });
    await gateways.owner.query(change, [gone.userId]);
    expect(await finished(id)).toMatchObject({ status: "failed", error: { status: 401 } });
    expect(await notesOf(note)).toEqual([]);
  });

  /** Queues a note, whose task is due when keys and grants are looked up again. */
  const queueNoteBy = async (credential: string, by: "apikey" | "Authorization") => {
    const note = randomUUID();
    const headers =
      by === "apikey" ? { apikey: credential } : { apikey: anonKey, Authorization: `Bearer ${credential}` };
    const run_at = new Date(Date.now() + 6_000);
    const body = { function: "write_down", arguments: { note }, run_at };
    const { status, body: id } = await gateways.post(`${gateways.one.url}/rest/v1/rpc/enqueue`, body, { headers });
    expect(status).toBe(200);
    return { id, note };
  };

  test.concurrent.each([
    ["was revoked", "update auth.api_keys set revoked_at = now() where owner_id = $1"],
    [
      "has expired",
      "update auth.api_keys set created_at = now() - interval '1 day', expires_at = now() where owner_id = $1",
    ],
    ["was deleted", "delete from auth.api_keys where owner_id = $1"],
  ])("fails with 401 where the API key that has queued it %s meanwhile", async (_, change) => {
    const { userId } = await newPerson(gateways);
    const key = `key_${randomUUID()}`;
    await gateways.owner.query(
      "insert into auth.api_keys (key_hash, prefix, role, owner_id) values (sha256($1), 'test', 'authenticated', $2)",
      [Buffer.from(key), userId],
    );
    const { id, note } = await queueNoteBy(key, "apikey");
    await gateways.owner.query(change, [userId]);
    expect(await finished(id)).toMatchObject({
      status: "failed",
      error: { status: 401, message: "Invalid API key" },
    });
    expect(await notesOf(note)).toEqual([]);
  });

  test.concurrent.each([
    ["was withdrawn", "delete from auth.oauth_grants where id = $1", "failed"],
    ["stands", "select $1::uuid", "done"],
  ])("ends as the grant of the application says, which %s", async (_, change, status) => {
    const { userId } = await newPerson(gateways);
    const client_id = randomUUID();
    await gateways.owner.query(
      `insert into auth.oauth_clients (id, name, redirect_uris, grant_types, auth_method, registration)
        values ($1, 'Writer', '{https://writer.example.org}', '{authorization_code}', 'none', 'manual')`,
      [client_id],
    );
    const { rows } = await gateways.owner.query(
      `insert into auth.oauth_grants (user_id, client_id, scopes, resource, expires_at)
        values ($1, $2, '{write}', $3, now() + interval '1 day') returning id`,
      [userId, client_id, gateways.one.url],
    );
    const claims = { sub: String(userId), role: "authenticated", aud: gateways.one.url, scope: "write", client_id };
    const { id, note } = await queueNoteBy(
      jwt.sign({ ...claims, oauth_grant_id: rows[0].id }, SECRET),
      "Authorization",
    );
    await gateways.owner.query(change, [rows[0].id]);
    expect(await finished(id)).toMatchObject({ status, ...(status === "failed" && { error: { status: 401 } }) });
    expect(await notesOf(note)).toHaveLength(status === "failed" ? 0 : 1);
  });

  /** A user who has queued a note, whose task is due when sessions are looked up again. */
  const queueNote = async () => {
    const { email, userId } = await newPerson(gateways);
    await gateways.owner.query("update auth.users set verified_email = email where user_id = $1", [userId]);
    const note = randomUUID();
    const client = createClient(gateways.one.url, anonKey, { auth: { persistSession: false } });
    expect((await client.auth.signInWithPassword({ email, password: PASSWORD })).error).toBeNull();
    const run_at = new Date(Date.now() + 6_000);
    const { data: id } = await client.rpc("enqueue", { function: "write_down", arguments: { note }, run_at });
    return { id, note, userId, client };
  };

  test.concurrent("runs although the user has signed out meanwhile", async () => {
    const { id, note, client } = await queueNote();
    expect((await client.auth.signOut()).error).toBeNull();
    expect(await finished(id)).toMatchObject({ status: "done" });
    expect(await notesOf(note)).toHaveLength(1);
  });

  test.concurrent("fails with 401 where the user has signed out meanwhile after a new password", async () => {
    const { id, note, userId, client } = await queueNote();
    await gateways.owner.query("select auth.set_password($1, $2)", [userId, "$argon2id$none"]);
    await client.auth.signOut();
    expect(await finished(id)).toMatchObject({ status: "failed", error: { status: 401 } });
    expect(await notesOf(note)).toEqual([]);
  });
});

test("where schema api is exposed, api.enqueue is called directly, and still not by anonymous callers", async () => {
  const service = await serve(gateways.database, { PGRST_DB_SCHEMAS: "public,api" });
  try {
    const call = (person: Person | null) =>
      clientOf(person, service).schema("api").rpc("enqueue", { function: "public.nothing", arguments: {} });
    const { data } = await call(ada);
    expect(await finished(data)).toMatchObject({ status: "done", owner: `user ${ada.userId}` });
    expect(await call(null)).toMatchObject({ status: 401 });
  } finally {
    await service.stop();
  }
});

describe("a function that SQL queues", () => {
  test("runs in the current role, without claims where there are none", async () => {
    const note = randomUUID();
    await finished(await enqueueInSql("service_role", "public.write_down", { note }));
    expect(await notesOf(note)).toMatchObject([
      { writer: null, role: "service_role", claims: null, interface: "queue" },
    ]);
  });

  test("is not queued where the transaction is rolled back", async () => {
    const note = randomUUID();
    const client = await gateways.owner.connect();
    await client.query("begin; set local role service_role");
    const { rows } = await client.query("select api.enqueue('write_down', $1) as id", [{ note }]);
    await client.query("rollback");
    client.release();
    // A task that is queued later has run when that one would have.
    await finished(await enqueueInSql("service_role", "nothing"));
    expect(await taskOf(rows[0].id)).toBeUndefined();
    expect(await notesOf(note)).toEqual([]);
  });

  test("passes numbers with all digits, arrays and documents, and returns composite values, rows and nothing", async () => {
    const digits = '{"amount": 12345678901234567890.10, "digits": [1.10], "document": {"a": 1.0}}';
    const { rows } = await gateways.owner.query(
      `select content_service.queue_call('service_role', null, 'numbers', $1) as numbers,
        content_service.queue_call('service_role', null, 'count_to', '{"last": 3}') as count,
        content_service.queue_call('service_role', null, 'nothing', '{}') as nothing`,
      [digits],
    );
    const { numbers, count, nothing } = rows[0];
    for (const id of [numbers, count, nothing]) await finished(id);
    const results = await gateways.owner.query(
      "select result::text, arguments from content_service.tasks where id = any($1) order by array_position($1, id)",
      [[numbers, count, nothing]],
    );
    expect(results.rows).toEqual([
      { result: '{"sum":12345678901234567890.10,"first":1.10,"copy":{"a": 1.0}}', arguments: {} },
      { result: "[1, 2, 3]", arguments: {} },
      { result: "null", arguments: {} },
    ]);
  });

  test("fails at its first error, and its changes are rolled back", async () => {
    const note = randomUUID();
    const task = await finished(await enqueueInSql("service_role", "refuse", { note }));
    expect(task).toMatchObject({ status: "failed", error: { status: 400, code: "WRONG", message: "Not today" } });
    expect(await notesOf(note)).toEqual([]);
  });

  test("is tried again after a serialization failure", async () => {
    const task = await finished(await enqueueInSql("service_role", "fragile"));
    expect(task).toMatchObject({ status: "done", result: "the second time" });
  });

  test("ends at its time limit, and is not tried again", async () => {
    const { rows } = await gateways.owner.query(
      "select content_service.queue_call('service_role', null, 'wait_long', '{}', time_limit => '0.2 s') as id",
    );
    expect(await finished(rows[0].id)).toMatchObject({ status: "failed", error: { code: "57014" } });
  });

  test("fails where it was dropped, or EXECUTE was revoked, before its time", async () => {
    const soon = new Date(Date.now() + 1_500);
    await gateways.owner.query(`
      create function public.dropped() returns void language sql as 'select 1';
      create function public.revoked() returns void language sql as 'select 1';
      grant execute on function public.dropped, public.revoked to service_role`);
    const ids = [
      await enqueueInSql("service_role", "dropped", {}, soon),
      await enqueueInSql("service_role", "revoked", {}, soon),
    ];
    await gateways.owner.query(
      "drop function public.dropped; revoke execute on function public.revoked from service_role",
    );
    expect(await finished(ids[0]!)).toMatchObject({ status: "failed", error: { status: 404, code: "PGRST202" } });
    expect(await finished(ids[1]!)).toMatchObject({ status: "failed", error: { status: 403, code: "42501" } });
  });

  test("runs after a restore, which brings back the tasks without their jobs", async () => {
    const note = randomUUID();
    const id = await enqueueInSql("service_role", "write_down", { note }, "2100-01-01");
    await gateways.owner.query("select graphile_worker.remove_job($1)", [id]);
    await gateways.owner.query("update content_service.tasks set run_at = now() where id = $1", [id]);
    await gateways.owner.query("select content_service.maintain_tasks()");
    expect(await finished(id)).toMatchObject({ status: "done" });
    expect(await notesOf(note)).toHaveLength(1);
  });

  test("completes its own task only, whatever role and claims it sets", async () => {
    const waiting = await enqueueInSql("service_role", "nothing", {}, "2100-01-01");
    const task = await finished(await enqueueInSql("authenticated", "change_caller", { note: "x" }));
    expect(task).toMatchObject({ status: "done", result: "service_role" });
    expect(await taskOf(waiting)).toMatchObject({ status: "queued" });
    // The next call on the same connections has its own role and claims.
    const note = randomUUID();
    await finished(await enqueue(ada, "write_down", { note }));
    expect(await notesOf(note)).toMatchObject([{ role: "authenticated", writer: String(ada.userId) }]);
  });

  test("replaces the waiting one with the same key, and runs once with the last arguments", async () => {
    const notes = [randomUUID(), randomUUID(), randomUUID()];
    const ids = [];
    for (const [index, note] of notes.entries()) {
      ids.push(
        await enqueueInSql("service_role", "write_down", { note }, index < 2 ? "2100-01-01" : new Date(), "once"),
      );
    }
    expect(new Set(ids).size).toBe(1);
    expect(await finished(ids[0]!)).toMatchObject({ status: "done", result: `written: ${notes[2]}` });
    for (const note of notes.slice(0, 2)) expect(await notesOf(note)).toEqual([]);
    expect(await notesOf(notes[2]!)).toHaveLength(1);
  });
});

test("a trigger of the owner queues a welcome at sign-up, in a role of its choice", async () => {
  await gateways.owner.query(`
    create table content_service.mails (recipient text not null, role text not null);
    alter table content_service.mails enable row level security;
    create function content_service.send_welcome(email text) returns void language sql security definer set search_path = '' as $$
      insert into content_service.mails values (email, auth.role())
    $$;
    create function content_service.tg_users__welcome() returns trigger language plpgsql security definer set search_path = '' as $$
    begin
      perform api.enqueue_as('service_role', 'public.send_welcome', jsonb_build_object('email', new.email));
      return null;
    end $$;
    create function public.send_welcome(email text) returns void return content_service.send_welcome(email);
    grant execute on function public.send_welcome, content_service.send_welcome to service_role;
    create trigger _900_welcome after insert on auth.users for each row execute function content_service.tg_users__welcome()`);
  const { email } = await newPerson(gateways);
  const mails = async () =>
    (await gateways.owner.query("select * from content_service.mails where recipient = $1", [email])).rows;
  await until(async () => (await mails()).length > 0);
  expect(await mails()).toEqual([{ recipient: email, role: "service_role" }]);
});

test("two gateways run each of many calls once", async () => {
  const note = randomUUID();
  await gateways.owner.query(
    "select content_service.queue_call('service_role', null, 'write_down', $1) from generate_series(1, 200)",
    [{ note }],
  );
  const unfinished =
    "select from content_service.tasks where function = 'public.write_down(text)' and finished_at is null";
  await until(async () => (await gateways.owner.query(unfinished)).rowCount === 0);
  expect(await notesOf(note)).toHaveLength(200);
});

import { createClient } from "@supabase/supabase-js";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { useFixture, useFolder } from "../fixture.ts";
import { createHostileSchema, HOSTILE_PATH, HOSTILE_SCHEMA, hostileCalls } from "../hostile-schema.ts";
import { startReceiver } from "../jobs/webhooks/receiver.ts";
import {
  type OperatedService,
  openOperatedService,
  PASSWORD,
  USER_EMAIL,
} from "../operations/admin/operated-service.ts";
import { anonKey, subscribed } from "../realtime/service.ts";
import { MailFolder } from "../rest-gateway/sign-in/auth-v1/mail-folder.ts";
import { runCommand } from "../service/cli/run-command.ts";
import { until } from "../until.ts";

const SCHEMA = `
  create type public.mood as enum ('good', 'bad');
  create table public.journal (
    id int generated always as identity primary key, author varchar(40) not null default auth.uid()::text, note varchar(100), words text,
    tags text[], mood public.mood, span int4range, moods public.mood[], document jsonb, written timestamptz default now(), amount numeric
  );
  create table public.remarks (id int generated always as identity primary key, journal int references public.journal, mood public.mood);
  alter table public.journal enable row level security;
  create policy own on public.journal using (author = auth.uid()::text) with check (author = auth.uid()::text);
  create policy admins on public.journal to admin using (true);
  grant all on public.journal, public.remarks to anon, authenticated, admin, service_role;
  create function public.count_moods(wanted public.mood) returns bigint language sql stable
    begin atomic select count(*) from public.journal where mood = wanted; end;
  grant execute on function public.count_moods to anon, authenticated, service_role;
  comment on table public.remarks is '@nestedInsert';
  insert into storage.buckets (id, name) values ('notes', 'notes');
  create policy all_objects on storage.objects to authenticated using (true) with check (true);
  create policy all_buckets on storage.buckets to authenticated using (true);
  insert into api.schedules (name, cron, function, arguments, role)
    values ('moods', '0 0 1 1 *', 'public.count_moods', '{"wanted": "good"}', 'service_role')`;

const receiver = useFixture(startReceiver);
const mails = useFixture(() => MailFolder.open());
const files = useFolder("files-");
const operated = useFixture(() => {
  const settings = {
    PGRST_DB_EXTRA_SEARCH_PATH: `public,${HOSTILE_SCHEMA}`,
    REST_REQUIRE_APIKEY: "false",
    WEBHOOK_NETWORK: "loopback",
    AUTH_AUTOCONFIRM: "false",
    MAIL_DIR: mails.path,
    STORAGE_DIR: files,
    STUDIO_SQL: "on",
  };
  return openOperatedService(settings, "content", async (owner) => {
    await owner.query(SCHEMA);
    await owner.query(
      "insert into api.webhooks (name, table_name, url, role) values ('journal', 'public.journal', $1, 'service_role')",
      [receiver.url],
    );
    const client = await owner.connect();
    // A role that may create objects in a schema on the path cannot put it before Postgres's own. The owner's sessions have it there all the same.
    await createHostileSchema(client, { path: `"$user", public, ${HOSTILE_SCHEMA}`, ownerPath: HOSTILE_PATH });
    client.release();
  });
});

type Caller = keyof OperatedService["tokens"];

async function send(caller: Caller | null, method: string, path: string, body?: unknown, headers = {}) {
  const token = caller && operated.tokens[caller];
  const response = await fetch(`${operated.service.url}${path}`, {
    method,
    headers: {
      ...(token && { Authorization: `Bearer ${token}`, apikey: token }),
      ...(body !== undefined && { "Content-Type": "application/json" }),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, text: await response.text() };
}

/** Runs a statement as the owner, in a session of the test that calls nothing hostile. */
async function askOwner(text: string, values: unknown[] = []): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: operated.database.ownerUrl, options: "-c search_path=pg_catalog" });
  await client.connect();
  try {
    return await client.query(text, values);
  } finally {
    await client.end();
  }
}

/** Sends the requests of all callers, in this order, and expects each to succeed. */
async function expectSuccess(requests: readonly (readonly [Caller | null, string, string, unknown?, object?])[]) {
  const failures: string[] = [];
  for (const [caller, method, path, body, headers] of requests) {
    const { status, text } = await send(caller, method, path, body, headers);
    if (status >= 400) failures.push(`${method} ${path} ${JSON.stringify(body)}: ${status} ${text.slice(0, 300)}`);
  }
  expect(failures).toEqual([]);
}

const ROW = {
  note: "first",
  words: "cats and dogs",
  tags: ["a", "b"],
  mood: "good",
  span: "[1,5)",
  moods: ["bad"],
  document: { a: { b: 1 } },
  amount: 1.5,
};

describe("on a database in which a user has replaced all functions, operators, types and relations of Postgres", () => {
  test("/rest/v1 responds as always", async () => {
    const filters = [
      "note=eq.first",
      "note=neq.x",
      "note=gt.a",
      "note=like.f*",
      "note=imatch.^F",
      "note=in.(first,second)",
      "note=isdistinct.x",
      "words=fts.cat",
      "words=plfts(english).dogs",
      "tags=eq.{a,b}",
      "tags=cs.{a}",
      "tags=cd.{a,b,c}",
      "tags=ov.{b}",
      "tags=isdistinct.{x}",
      "mood=eq.good",
      "mood=in.(good,bad)",
      "span=eq.[1,5)",
      "span=cs.[2,3)",
      "span=ov.[4,9)",
      "span=sr.[0,1)",
      "span=adj.[5,6)",
      "moods=cs.{bad}",
      "document->a->>b=eq.1",
      "amount=gte.1",
      "id=eq(any).{1,2}",
      "or=(note.eq.first,and(mood.eq.bad,amount.lt.0))",
      "not.and=(id.lt.0,id.gt.9)",
      "remarks.mood=eq.good",
      "remarks=not.is.null",
    ];
    await expectSuccess([
      ["user", "POST", "/rest/v1/journal?select=*", ROW, { Prefer: "return=representation" }],
      ["user", "POST", "/rest/v1/journal", [ROW, { ...ROW, note: "second" }], { Prefer: "missing=default" }],
      [
        "user",
        "POST",
        "/rest/v1/journal?select=*,remarks(*)",
        { ...ROW, remarks: [{ mood: "bad" }] },
        { Prefer: "nested=insert, return=representation" },
      ],
      [
        "service",
        "POST",
        "/rest/v1/remarks?on_conflict=id",
        { journal: 1, mood: "good" },
        { Prefer: "resolution=merge-duplicates" },
      ],
      ...filters.map(
        (filter) =>
          [
            "user",
            "GET",
            `/rest/v1/journal?select=*,remarks(*)&${filter.replace(/[{}[\]^|]/g, encodeURIComponent)}`,
          ] as const,
      ),
      ["service", "GET", "/rest/v1/journal?select=mood,amount&order=mood.desc", undefined, { Prefer: "count=exact" }],
      ["service", "GET", "/rest/v1/journal?order=mood,tags,note&limit=1&cursor="],
      ["service", "GET", "/rest/v1/journal?order=id&limit=1&offset=1", undefined, { Accept: "text/csv" }],
      [
        "user",
        "PATCH",
        "/rest/v1/journal?mood=eq.good",
        { note: "changed" },
        { Prefer: "return=representation, handling=strict, max-affected=9" },
      ],
      ["user", "POST", "/rest/v1/rpc/count_moods", { wanted: "good" }],
      [
        "user",
        "POST",
        "/rest/v1/",
        [{ method: "POST", path: "/journal", body: ROW }],
        { "Content-Type": "application/vnd.batch+json" },
      ],
      ["user", "DELETE", "/rest/v1/journal?note=eq.second"],
      ["user", "GET", "/rest/v1/"],
    ]);
  });

  test("/api/v1 and /users respond as always", async () => {
    const filters = [
      "note=first",
      "mood=good",
      "note.like=a%",
      "tags.contains=a",
      "sort=-mood",
      "amount.gt=1",
      "span=%5B1,5)",
      "page=1&limit=2",
      "cursor=",
    ];
    await expectSuccess([
      ["user", "POST", "/api/v1/journal", { ...ROW, note: "third" }],
      ["user", "GET", "/api/v1/journal"],
      ["user", "GET", "/api/v1/journal/1"],
      ["user", "PATCH", "/api/v1/journal/1", { note: "again" }],
      ["user", "GET", "/api/v1/journal/1/remarks"],
      ["user", "GET", "/users?limit=5"],
      ["user", "GET", `/users/${operated.userId}`],
      ["user", "PATCH", `/users/${operated.userId}`, { name: "Ada again" }],
      ["user", "POST", "/api/v1/articles", { title: "On cats", content: "All of them." }],
      ["user", "GET", "/api/v1/articles?keyword=cats"],
      ["user", "DELETE", "/api/v1/journal/2"],
      ["user", "GET", "/openapi.json"],
    ]);
    for (const filter of filters) await send("user", "GET", `/api/v1/journal?${filter}`);
  });

  test("GraphQL responds as always", async () => {
    const documents = [
      "{ journals { edges { node { id note tags mood moods document remarks { id mood } } } totalCount } }",
      `{ journals(where: {note: {eq: "first"}, mood: {in: [good]}}, orderBy: [{mood: DESC}], first: 1) { edges { cursor node { id } } pageInfo { hasNextPage endCursor } } }`,
      `{ users { id name articles { title } } me { name } search(keyword: "cats") { __typename } }`,
      `mutation { createJournal(input: {note: "by GraphQL", mood: good, tags: ["x"]}) { id } }`,
      `mutation @transaction { one: createJournal(input: {note: "a"}) { id } two: updateJournal(id: 1, input: {note: "b"}) { note } }`,
      "{ countMoods(wanted: good) }",
    ];
    const errorsOf = async (query: string) => {
      const { text } = await send("user", "POST", "/graphql", { query });
      return JSON.parse(text).errors ?? [];
    };
    // An operation waits ten seconds for a schema that is being built, which takes longer beside other tests.
    await until(async () => (await errorsOf("{ journals { totalCount } }")).length === 0);
    for (const query of documents) expect(await errorsOf(query)).toEqual([]);
  });

  test("accounts sign up, in and out", async () => {
    const client = createClient(operated.service.url, anonKey, { auth: { persistSession: false } });
    const address = "eve@example.org";
    expect((await client.auth.signUp({ email: address, password: PASSWORD })).error).toBeNull();
    const { code } = await mails.receiveOne(address);
    const proved = await client.auth.verifyOtp({ email: address, token: code, type: "email" });
    expect(proved.error).toBeNull();
    expect((await client.auth.signInWithPassword({ email: address, password: PASSWORD })).error).toBeNull();
    expect((await client.auth.refreshSession()).error).toBeNull();
    expect((await client.auth.updateUser({ data: { name: "Eve" } })).error).toBeNull();
    expect((await client.auth.mfa.enroll({ factorType: "totp" })).error).toBeNull();
    expect((await client.auth.getUser()).error).toBeNull();
    expect((await client.auth.signOut()).error).toBeNull();
    expect((await client.auth.resetPasswordForEmail(address)).error).toBeNull();
    await operated.signIn(USER_EMAIL);
    await expectSuccess([
      [null, "POST", "/auth/login", { username: USER_EMAIL, password: PASSWORD }],
      ["admin", "POST", "/auth/keys", { name: "key", role: "authenticated" }],
      ["admin", "GET", "/auth/keys"],
      ["service", "GET", "/auth/v1/admin/users"],
    ]);
    expect((await send(null, "POST", "/auth/login", { username: USER_EMAIL, password: "wrong" })).status).toBe(401);
  });

  test("files are kept", async () => {
    const { tokens, service } = operated;
    const { storage } = createClient(service.url, anonKey, {
      global: { headers: { Authorization: `Bearer ${tokens.user}` } },
    });
    const notes = storage.from("notes");
    const steps = [
      () => notes.upload("a/b.txt", "text", { contentType: "text/plain" }),
      () => notes.list("a"),
      () => notes.copy("a/b.txt", "a/c.txt"),
      () => notes.move("a/c.txt", "a/d.txt"),
      () => notes.download("a/d.txt"),
      () => notes.createSignedUrl("a/b.txt", 60),
      () => notes.remove(["a/b.txt", "a/d.txt"]),
      () => storage.listBuckets(),
    ];
    for (const step of steps) expect((await step()).error).toBeNull();
  });

  test("channels and webhooks send changes", async () => {
    const client = createClient(operated.service.url, anonKey);
    await client.realtime.setAuth(operated.tokens.user);
    const received = Promise.withResolvers<unknown>();
    const filter = { event: "INSERT", schema: "public", table: "journal", filter: "mood=eq.good" } as const;
    const channel = client.channel("changes", { config: { broadcast: { self: true }, presence: { key: "me" } } });
    await subscribed(channel.on("postgres_changes", filter, received.resolve));
    await channel.track({ at: 1 });
    await expectSuccess([["user", "POST", "/rest/v1/journal", { ...ROW, note: "sent" }]]);
    await received.promise;
    await expect.poll(() => receiver.requests.some(({ body }) => body.includes('"sent"'))).toBe(true);
    await client.realtime.disconnect();
  });

  test("the queue and schedules run calls", async () => {
    const headers = { Prefer: "respond-async", "Idempotency-Key": "once" };
    const { status, text } = await send("user", "POST", "/rest/v1/rpc/count_moods", { wanted: "good" }, headers);
    expect([status, text]).toEqual([202, expect.anything()]);
    const { rows } = await askOwner("select api.run_schedule('moods') as status");
    expect(rows).toEqual([{ status: "queued" }]);
    const unfinished = "select from content_service.tasks where finished_at is null";
    await until(async () => (await askOwner(unfinished)).rowCount === 0);
    const runs = await askOwner("select status, error from api.schedule_runs");
    expect(runs.rows).toEqual([{ status: "done", error: null }]);
  });

  test("Studio's requests are answered", async () => {
    const { userId } = operated;
    const [{ uuid }] = (await askOwner("select id as uuid from auth.users where user_id = $1", [userId])).rows;
    await expectSuccess([
      ["admin", "GET", "/admin/v1/catalog"],
      ["admin", "GET", "/admin/v1/policies"],
      ["admin", "GET", "/admin/v1/doctor?migrations=false"],
      ["admin", "GET", "/admin/v1/running"],
      ["admin", "GET", "/admin/v1/sessions"],
      ["admin", "GET", `/admin/v1/sessions?user=${uuid}`],
      ["admin", "GET", "/admin/v1/audit-log?event=session.&limit=5"],
      ["admin", "GET", `/admin/v1/user-keys?user=${uuid}`],
      ["admin", "GET", "/admin/v1/providers"],
      ["admin", "GET", "/admin/v1/migration"],
      ["admin", "POST", "/admin/v1/view-as", { role: "anon" }],
      [
        "admin",
        "POST",
        "/admin/v1/why",
        { path: "/rest/v1/journal?mood=eq.good", as: { role: "authenticated", claims: { sub: userId } } },
      ],
    ]);
  });

  test.each([
    ["policies", ["public.journal"]],
    ["why", ["--role", "anon", "journal"]],
    ["doctor", []],
    ["webhooks", []],
    ["keys", ["list"]],
    ["user", ["list"]],
    ["types", []],
  ])("the command %s works", async (name, words) => {
    const { stderr } = await runCommand(name, words, operated.database, { REST_REQUIRE_APIKEY: "false" });
    expect(stderr).not.toMatch(/error|hostile/i);
  });

  test("nothing of the user was called, by nobody", async () => {
    await operated.service.stop();
    const owner = new pg.Client({ connectionString: operated.database.ownerUrl });
    await owner.connect();
    const calls = await hostileCalls(owner);
    await owner.end();
    expect(calls).toEqual([]);
  });
});

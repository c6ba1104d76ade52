import { randomUUID } from "node:crypto";
import { type FetchError, isChangeMessage, type Message, type Row, Shape, ShapeStream } from "@electric-sql/client";
import { afterEach, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { anonKey, openRealtimeFixture, token } from "../../realtime/service.ts";
import { serve } from "../../serve.ts";
import { until } from "../../until.ts";

type StreamOptions = Omit<NonNullable<ConstructorParameters<typeof ShapeStream<Row>>[0]>, "url" | "params">;
type Params = { table: string; where?: string; replica?: "full" };

const SCHEMA = `
  create table public.members (team int, person text, primary key (team, person));
  create table public.tasks (
    id int primary key, team int not null, title text, done bool default false, tags text[], secret text);
  create function public.is_member(wanted int) returns bool language sql stable security definer set search_path = ''
    as 'select exists (select from public.members where team = wanted and person = auth.jwt() ->> ''sub'')';
  grant execute on function public.is_member to anon, authenticated;
  alter table public.tasks enable row level security;
  create policy select_of_team on public.tasks for select using (public.is_member(team));
  grant select (id, team, title, done, tags) on public.tasks to authenticated;
  create table public.timed (id int primary key, at timestamptz);
  grant select on public.timed to anon, authenticated;
  create table public.news (id int primary key, title text, "Odd/name" text);
  grant select on public.news to anon, authenticated;
  grant insert, delete on public.news to authenticated;
  create function public.txid(public.news) returns bigint language sql stable set search_path = ''
    as 'select pg_catalog.pg_current_xact_id_if_assigned()::pg_catalog.xid::text::bigint';
  grant execute on function public.txid to authenticated;
  create table public.pairs (a text, b int, n numeric, primary key (a, b));
  grant select on public.pairs to anon, authenticated;
  create table public.of_header (id int primary key);
  alter table public.of_header enable row level security;
  create policy by_header on public.of_header for select
    using (current_setting('request.headers', true)::json ->> 'x-tenant' = id::text);
  grant select on public.of_header to anon;
  insert into public.tasks (id, team, title, tags) select n, 1 + n % 2, 'task ' || n, '{a,b}' from generate_series(1, 6) n;
  insert into public.members values (1, 'ann'), (2, 'bob');
  insert into public.news values (1, 'first', 'x'), (2, 'it''s', null);
  insert into public.pairs values ('a/b', 1, 1.5), ('c', 2, 20)`;

let abort = new AbortController();

const fixture = useFixture(() => openRealtimeFixture(SCHEMA, { REST_REQUIRE_APIKEY: "false" }));
afterEach(() => {
  abort.abort();
  abort = new AbortController();
});

const sql = (text: string) => fixture.owner.query(text);
const bearer = (person: string, claims: object = {}) => ({
  authorization: `Bearer ${token({ sub: person, role: "authenticated", ...claims })}`,
});

function follow(params: Params, options: StreamOptions = {}) {
  const url = `${fixture.service.url}/v1/shape`;
  const stream = new ShapeStream<Row>({ url, params, signal: abort.signal, ...options });
  return { stream, shape: new Shape<Row>(stream as ConstructorParameters<typeof Shape<Row>>[0]) };
}

async function untilRows(shape: Shape, expected: readonly Row[]) {
  const wanted = JSON.stringify(expected.toSorted(byId));
  await until(() => JSON.stringify(shape.currentRows.toSorted(byId)) === wanted);
}

const untilIds = (shape: Shape<Row>, ids: readonly number[]) =>
  until(() => JSON.stringify(shape.currentRows.map(({ id }) => id).toSorted()) === JSON.stringify(ids));

const byId = (one: Row, other: Row) => Number(one.id) - Number(other.id);

async function request(query: string, headers: Readonly<Record<string, string>> = {}) {
  const response = await fetch(`${fixture.service.url}/v1/shape?${query}`, { headers });
  return { response, body: JSON.parse((await response.text()) || "null") };
}

type RowMessage = { key?: string; value: Record<string, string | null> };

const rowsIn = (body: readonly RowMessage[]) => body.filter(({ key }) => key !== undefined);

test("the client has the rows, and then each commit", async () => {
  const { shape, stream } = follow({ table: "news" });
  expect(await shape.rows).toEqual([
    { id: 1, title: "first", "Odd/name": "x" },
    { id: 2, title: "it's", "Odd/name": null },
  ]);
  await sql(
    "begin; insert into public.news values (3, 'new'); update public.news set title = 'one' where id = 1; commit",
  );
  await untilRows(shape, [
    { id: 1, title: "one", "Odd/name": "x" },
    { id: 2, title: "it's", "Odd/name": null },
    { id: 3, title: "new", "Odd/name": null },
  ]);
  await sql("delete from public.news where id = 3; update public.news set title = 'first' where id = 1");
  await until(() => shape.currentRows.length === 2);
  expect(stream.isUpToDate).toBe(true);
});

test("rows and columns are those that the caller may read, and come and go with a membership", async () => {
  const { shape } = follow({ table: "tasks", where: "title like 'task %'" }, { headers: bearer("ann") });
  const task = (id: number) => ({ id, team: 1 + (id % 2), title: `task ${id}`, done: false, tags: ["a", "b"] });
  expect(await shape.rows).toEqual([2, 4, 6].map(task));
  await sql("insert into public.members values (2, 'ann')");
  await untilRows(shape, [1, 2, 3, 4, 5, 6].map(task));
  await sql("delete from public.members where person = 'ann' and team = 1");
  await untilRows(shape, [1, 3, 5].map(task));
  await sql("delete from public.members where person = 'ann'; insert into public.members values (1, 'ann')");
  await untilRows(shape, [2, 4, 6].map(task));
});

test("a caller cannot continue the shape of another one", async () => {
  const { response, body } = await request("table=tasks&offset=-1", bearer("ann"));
  expect(body.filter((message: { key?: string }) => message.key)).toHaveLength(3);
  const [handle, offset] = ["handle", "offset"].map((name) => response.headers.get(`electric-${name}`)!);
  const again = `table=tasks&handle=${handle}&offset=${offset}`;
  expect((await request(again, bearer("ann"))).response.status).toBe(200);
  const other = await request(again, bearer("bob"));
  expect(other.response.status).toBe(409);
  expect(other.body).toEqual([{ headers: { control: "must-refetch" } }]);
  expect(other.response.headers.get("electric-handle")).not.toBe(handle);
  // One that may not read the table is told so, as at the beginning.
  expect((await request(again)).response.status).toBe(401);
});

test("a later token of the same account continues", async () => {
  const first = await request("table=tasks&offset=-1", bearer("ann"));
  const [handle, offset] = ["handle", "offset"].map((name) => first.response.headers.get(`electric-${name}`)!);
  const next = bearer("ann", { session: 2 });
  const { response, body } = await request(`table=tasks&handle=${handle}&offset=${offset}`, next);
  expect([response.status, response.headers.get("electric-handle"), rowsIn(body)]).toEqual([200, handle, []]);
});

test("an unknown handle has the client begin anew", async () => {
  const { shape } = follow({ table: "news" }, { handle: "unknown", offset: "7_0" });
  expect((await shape.rows).map(({ id }) => id)).toEqual([1, 2]);
});

test.each([
  ["n > 1.75", [20]],
  ["a in ('c', 'x') and not (n is null)", [20]],
  ["b = any($1)", [1.5, 20]],
  ["b between 1 and 1 or a ilike 'C%'", [1.5, 20]],
  ["(a = 'a/b' and b <> -2) and n is not distinct from '1.50'::numeric", [1.5]],
  ["not a not in ('c')", [20]],
])("where: %s", async (where, expected) => {
  const query = new URLSearchParams({ table: "public.pairs", where, offset: "-1", "params[1]": "{1,2}" });
  const { body } = await request(String(query));
  expect(rowsIn(body).map(({ value }) => Number(value.n))).toEqual(expected);
});

test("keys, values and types are spelled as Electric does", async () => {
  const { response, body } = await request("table=pairs&columns=b,a&where=b=1&offset=-1");
  expect(body[0]).toEqual({
    key: '"public"."pairs"/"a//b"/"1"',
    value: { a: "a/b", b: "1" },
    headers: { operation: "insert", relation: ["public", "pairs"] },
  });
  expect(JSON.parse(response.headers.get("electric-schema")!)).toEqual({
    a: { type: "text", not_null: true, pk_index: 0 },
    b: { type: "int4", not_null: true, pk_index: 1 },
  });
});

test.each([
  ["table=news&offset=-1&where=title%20=%20lower('x')", 400, /position \d+/],
  ["table=news&offset=-1&where=nothing%20=%201", 400, /no column "nothing", at position 1/],
  ["table=news&offset=-1&where=id%20=%20$1", 400, /\$1 has no value/],
  ["table=news&offset=-1&where=1%20=%201", 400, /a column on one side/],
  [`table=news&offset=-1&where=${"(".repeat(60)}`, 400, /at most 50 levels/],
  ["table=news&offset=-1&where=id%20=%20'x'", 400, /invalid input syntax/],
  ["table=timed&offset=-1&where=at%20<%20'now'", 400, /depends on the time/],
  ["table=timed&offset=-1&where=at%20<%20$1&params[1]=today", 400, /depends on the time/],
  ["table=news&offset=-1&columns=title", 400, /primary key/],
  ["table=news&offset=x", 400, /offset/],
  ["table=news&offset=-1&subset__order_by=id%20up", 400, /subset__order_by: expected ASC.*, at position 4/],
  ["table=absent&offset=-1", 404, /absent/],
  ["table=of_header&offset=-1", 400, /headers of a request/],
])("%s is refused with %i", async (query, status, message) => {
  const { response, body } = await request(query);
  expect([response.status, body.error.message]).toEqual([status, expect.stringMatching(message)]);
});

test("columns that the caller may not read are refused by name and in conditions", async () => {
  const { response } = await request("table=tasks&offset=-1&columns=id,secret", bearer("ann"));
  expect(response.status).toBe(400);
  expect((await request("table=tasks&offset=-1&where=secret='x'", bearer("ann"))).response.status).toBe(400);
});

test("responses may be cached for others only without credentials", async () => {
  const [open, own] = [
    await request("table=news&offset=-1"),
    await request("table=news&offset=-1", { apikey: anonKey }),
  ];
  expect(open.response.headers.get("cache-control")).toMatch(/^public/);
  expect(own.response.headers.get("cache-control")).toBe("private, no-store");
  expect(own.response.headers.get("vary")).toMatch(/authorization/i);
  const tag = open.response.headers.get("etag")!;
  expect((await request("table=news&offset=-1", { "if-none-match": tag })).response.status).toBe(304);
});

test("the full replica has old values, and changes alone have no rows at first", async () => {
  const { stream } = follow({ table: "news", replica: "full" }, { log: "changes_only" });
  const messages: unknown[] = [];
  stream.subscribe((batch) => void messages.push(...batch.filter((message) => "key" in message)));
  await until(() => stream.isUpToDate);
  expect(messages).toEqual([]);
  await sql("update public.news set title = 'changed' where id = 2");
  await until(() => messages.length > 0);
  expect(messages[0]).toMatchObject({
    value: { id: 2, title: "changed", "Odd/name": null },
    old_value: { title: "it's" },
    headers: { operation: "update" },
  });
  await sql("update public.news set title = 'it''s' where id = 2");
});

test("changes come as events", async () => {
  const { shape } = follow({ table: "news" }, { liveSse: true });
  await shape.rows;
  await sql("insert into public.news values (9, 'event')");
  await until(() => shape.currentRows.some(({ title }) => title === "event"));
  await sql("delete from public.news where id = 9");
  await expect.poll(() => shape.currentRows.length === 2).toBe(true);
});

test("a revoked privilege ends the shape with an error", async () => {
  let error: unknown;
  const onError = (thrown: Error) => {
    error = thrown;
  };
  const { shape } = follow({ table: "pairs" }, { onError });
  await shape.rows;
  await sql("revoke select on public.pairs from anon");
  await until(() => error !== undefined);
  expect((error as FetchError).status).toBe(401);
  await sql("grant select on public.pairs to anon");
});

test.each(["GET", "POST"] as const)("a subset of the rows is read by %s, and its changes follow", async (method) => {
  const { stream, shape } = follow({ table: "tasks" }, { log: "changes_only", offset: "now", headers: bearer("ann") });
  const subset = { where: "id > $1", params: { 1: 1 }, orderBy: "id desc nulls last", limit: 2, method };
  const { data, metadata } = await stream.requestSnapshot(subset);
  expect(data.map(({ value }) => value.id)).toEqual([6, 4]);
  expect(BigInt(metadata.xmax)).toBeGreaterThan(0n);
  await untilIds(shape, [4, 6]);
  await sql("update public.tasks set title = 'changed' where id in (4, 5)");
  await until(() => shape.currentRows.some(({ title }) => title === "changed"));
  expect(shape.currentRows.map(({ id }) => id).toSorted()).toEqual([4, 6]);
  await sql("update public.tasks set title = 'task ' || id where id in (4, 5)");
});

test("a subset that was read between two states of the log is corrected, also where these are equal", async () => {
  const params = { table: "tasks", where: "id > 3" };
  const { stream, shape } = follow(params, { log: "changes_only", offset: "now", headers: bearer("ann") });
  const whole = follow(params, { headers: bearer("ann") });
  const task = (id: number) => ({ id, team: 1, title: `task ${id}`, done: false, tags: ["a", "b"] });
  const all = [4, 6].map(task);
  await untilRows(whole.shape, all);
  for (let round = 0; round < 20; round++) {
    await sql("update public.tasks set title = 'between' where id = 4; delete from public.tasks where id = 6");
    await stream.requestSnapshot({ where: "team = 1" });
    await sql(`update public.tasks set title = 'task 4' where id = 4;
      insert into public.tasks (id, team, title, tags) values (6, 1, 'task 6', '{a,b}')`);
    await untilRows(shape, all);
    await untilRows(whole.shape, all);
  }
});

test("changes name the transactions of writes, as the interface for tables returns them", async () => {
  const { stream } = follow({ table: "news" });
  const messages: Message<Row>[] = [];
  stream.subscribe((batch) => void messages.push(...batch));
  await until(() => stream.isUpToDate);
  const written = await fetch(`${fixture.service.url}/rest/v1/news?select=id,txid`, {
    method: "POST",
    headers: { ...bearer("ann"), "content-type": "application/json", prefer: "return=representation" },
    body: JSON.stringify([
      { id: 7, title: "seven" },
      { id: 8, title: "eight" },
    ]),
  });
  const rows = (await written.json()) as { id: number; txid: number }[];
  const txids = [rows[0]!.txid];
  expect(rows).toEqual([7, 8].map((id) => ({ id, txid: txids[0] })));
  const changes = () => messages.filter((message) => isChangeMessage(message)).slice(2);
  await until(() => changes().length === 2);
  expect(changes()).toMatchObject([7, 8].map((id) => ({ value: { id }, headers: { operation: "insert", txids } })));
  await sql("delete from public.news where id in (7, 8)");
  await until(() => changes().length === 4);
  expect(changes()[2]!.headers.txids).not.toEqual(txids);
});

const txidsOf = (messages: readonly { headers: object }[]): number[] =>
  messages.flatMap(({ headers }) => ("control" in headers && "txids" in headers ? (headers.txids as number[]) : []));

/** Returns the number of its transaction. */
async function writeUnchanged(): Promise<number> {
  const { rows } = await fixture.owner.query<{ txid: string }>(
    `with written as (update public.news set title = title returning id)
      select distinct pg_current_xact_id()::xid::text as txid from written`,
  );
  return Number(rows[0]!.txid);
}

test.each([true, false])(
  "a transaction that changes no row of the shape is named with the next one that does: %o",
  async (liveSse) => {
    const { stream } = follow({ table: "news" }, { liveSse });
    const named: number[] = [];
    stream.subscribe((batch) => void named.push(...txidsOf(batch)));
    await until(() => stream.isUpToDate);
    const txid = await writeUnchanged();
    const again = `table=news&handle=${stream.shapeHandle}&offset=${stream.lastOffset}`;
    await until(async () => txidsOf((await request(again)).body).includes(txid));
    await sql("insert into public.news values (9, 'nine')");
    await until(() => named.includes(txid));
    await sql("delete from public.news where id = 9");
    expect(named.filter((each) => each === txid)).toHaveLength(1);
  },
);

test("a transaction that changes no row of the shape does not answer a long poll, and moves no offset", async () => {
  // Another token, as of the next second, would take the shape over.
  const headers = bearer("poll");
  const { response: first } = await request("table=news&offset=-1", headers);
  const [handle, offset] = ["handle", "offset"].map((name) => first.headers.get(`electric-${name}`)!);
  const again = `table=news&handle=${handle}&offset=${offset}`;
  const polled = request(`${again}&live=true`, headers);
  const txid = await writeUnchanged();
  let named: Awaited<ReturnType<typeof request>>;
  do named = await request(again, headers);
  while (!txidsOf(named.body).includes(txid));
  expect(named.response.headers.get("electric-offset")).toBe(offset);
  await sql("insert into public.news values (9, 'nine')");
  const { body } = await polled;
  expect(body).toMatchObject([{ value: { id: "9" } }, { headers: { control: "up-to-date" } }]);
  expect(txidsOf(body)).toContain(txid);
  await sql("delete from public.news where id = 9");
});

test("a key that is revoked during a long poll gets no further rows", async () => {
  const key = `key_${randomUUID()}`;
  const { rows } = await fixture.owner.query(
    "insert into auth.api_keys (key_hash, prefix, role) values (sha256($1), 'test', 'authenticated') returning id",
    [Buffer.from(key)],
  );
  const { response: first } = await request("table=news&offset=-1", { apikey: key });
  const [handle, offset] = ["handle", "offset"].map((name) => first.headers.get(`electric-${name}`)!);
  const polled = request(`table=news&handle=${handle}&offset=${offset}&live=true`, { apikey: key });
  await fixture.owner.query("update auth.api_keys set revoked_at = now() where id = $1", [rows[0].id]);
  await until(async () => (await request("table=news&offset=-1", { apikey: key })).response.status === 401);
  await sql("insert into public.news values (9, 'nine')");
  expect(await polled).toMatchObject({ response: { status: 401 }, body: { error: { code: "AUTH_EXPIRED" } } });
  await sql("delete from public.news where id = 9");
});

test("a caller has as many shapes as it likes, of which the latest are kept", async () => {
  const open = (id: number) => request(`table=news&offset=-1&where=id%20>%20${id}`, bearer("eve"));
  const opened: Awaited<ReturnType<typeof request>>[] = [];
  for (let id = 0; id < 103; id++) opened.push(await open(id));
  expect(opened.map(({ response }) => response.status)).toEqual(opened.map(() => 200));
  const again = ({ response: { headers } }: (typeof opened)[number], id: number) =>
    request(
      `table=news&handle=${headers.get("electric-handle")}&offset=${headers.get("electric-offset")}&where=id%20>%20${id}`,
      bearer("eve"),
    );
  expect((await again(opened[102]!, 102)).response.status).toBe(200);
  expect((await again(opened[0]!, 0)).response.status).toBe(409);
  expect((await request("table=news&offset=-1", bearer("bob"))).response.status).toBe(200);
});

test("an error of a condition says nothing of rows that the caller may not read", async () => {
  // Only rows of the other team have this text.
  await sql("update public.tasks set title = '%\\' where team = 2");
  const { response, body } = await request("table=tasks&offset=-1&where='x'%20like%20title", bearer("ann"));
  expect([response.status, rowsIn(body)]).toEqual([200, []]);
  const other = await request("table=tasks&offset=-1&where='x'%20like%20title", bearer("bob"));
  expect(other.response.status).toBe(400);
  await sql("update public.tasks set title = 'task ' || id");
});

test("a value that a condition uses many times is refused before it fills the memory", async () => {
  const uses = Array(40).fill("$1").join(",");
  const { response, body } = await request(
    `table=news&offset=-1&where=title%20in%20(${uses})&params[1]=${"x".repeat(4000)}`,
  );
  expect([response.status, body.error.code]).toEqual([400, "INVALID_SHAPE"]);
});

test("a response to a caller without credentials is cached for others like it only", async () => {
  const { response } = await request("table=news&offset=-1");
  expect(response.headers.get("cache-control")).toContain("public");
  expect(response.headers.get("vary")).toContain("Authorization");
});

test("a caller who asks for other handles takes nobody's away", async () => {
  const { response: first } = await request("table=news&offset=-1");
  const handle = first.headers.get("electric-handle")!;
  let expired = handle;
  for (let count = 0; count < 10; count++) {
    const { response } = await request(`table=news&offset=-1&expired_handle=${expired}`);
    expect(response.headers.get("electric-handle")).not.toBe(expired);
    expired = response.headers.get("electric-handle")!;
  }
  const offset = first.headers.get("electric-offset");
  expect((await request(`table=news&offset=${offset}&handle=${handle}`)).response.status).toBe(200);
});

test("the function before each request refuses also those for a shape that another caller has opened", async () => {
  await sql(`create function public.require_app() returns void language plpgsql stable as $$ begin
    if current_setting('request.headers')::json ->> 'x-app' is null then raise sqlstate 'PT403' using message = 'x-app is missing'; end if;
  end $$; grant execute on function public.require_app to anon, authenticated`);
  const settings = { REST_REQUIRE_APIKEY: "false", PGRST_DB_PRE_REQUEST: "public.require_app" };
  const service = await serve(fixture.database, settings);
  try {
    const statusWith = async (headers: Readonly<Record<string, string>>) =>
      (await fetch(`${service.url}/v1/shape?table=news&offset=-1`, { headers })).status;
    expect(await statusWith({ "x-app": "mine" })).toBe(200);
    expect(await statusWith({})).toBe(403);
  } finally {
    await service.stop();
  }
});

test("a caller has at most 200 requests that wait, and new ones when others have ended", async () => {
  // Another token of the caller would hand the shape over: tokens that are signed in another second differ.
  const headers = bearer("many");
  const { response } = await request("table=news&offset=-1", headers);
  const [handle, offset] = ["handle", "offset"].map((name) => response.headers.get(`electric-${name}`)!);
  const controller = new AbortController();
  const wait = () =>
    fetch(`${fixture.service.url}/v1/shape?table=news&handle=${handle}&offset=${offset}&live=true&live_sse=true`, {
      headers,
      signal: controller.signal,
    });
  const waiting = await Promise.all(Array.from({ length: 200 }, wait));
  const refused = await wait();
  expect([refused.status, ((await refused.json()) as { error: { code: string } }).error.code]).toEqual([
    429,
    "RATE_LIMITED",
  ]);
  // A response that is used no more is collected, and its request ends.
  expect(waiting.every(({ status }) => status === 200)).toBe(true);
  controller.abort();
  await until(async () => {
    const again = new AbortController();
    const { status } = await fetch(
      `${fixture.service.url}/v1/shape?table=news&handle=${handle}&offset=${offset}&live=true&live_sse=true`,
      { headers, signal: again.signal },
    );
    again.abort();
    return status === 200;
  });
});

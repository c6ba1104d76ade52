import { once } from "node:events";
import pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { cloneDatabase } from "../database.ts";
import { useFixture } from "../fixture.ts";
import { serve } from "../serve.ts";
import { until } from "../until.ts";
import { type Payload, RawClient } from "./raw-client.ts";
import { anonKey, openRealtimeFixture, token } from "./service.ts";

const clients: RawClient[] = [];

const fixture = useFixture(() =>
  openRealtimeFixture(undefined, { REALTIME_MAX_CHANNELS: "3", REALTIME_CHECK_TIMEOUT_SECONDS: "2" }),
);
afterEach(() => Promise.all(clients.splice(0).map((client) => client.close())));

async function open(
  options: ConstructorParameters<typeof RawClient>[1] = {},
  url = fixture.service.url,
): Promise<RawClient> {
  const client = new RawClient(url, options);
  clients.push(client);
  return client.opened();
}

const NEWS = { event: "*", schema: "public", table: "news" };
const ok = (response: object = {}) => ({ status: "ok", response });
const refused = (reason: string) => ({ status: "error", response: { reason: expect.stringContaining(reason) } });

describe("a join", () => {
  test("is answered with its bindings unchanged and in order, each with an id", async () => {
    const client = await open();
    const request = [NEWS, { ...NEWS, filter: "id=eq.1", extra: [1] }, { event: "INSERT", schema: "public" }, NEWS];
    const { payload } = await client.join("realtime:x", { postgres_changes: request });
    const result: { id: number }[] = payload.response.postgres_changes;
    expect(result).toEqual(request.map((each) => ({ ...each, id: expect.any(Number) })));
    expect(result.every(({ id }) => id > 0 && id < 2 ** 27)).toBe(true);
    expect(new Set(result.map(({ id }) => id)).size).toBe(3);
    const system = await client.until(({ event }) => event === "system");
    expect(system.payload).toEqual({
      extension: "postgres_changes",
      status: "ok",
      message: "Subscribed to PostgreSQL",
      channel: "x",
    });
    await fixture.owner.query("insert into news (id) values (1)");
    const change = await client.until(({ event }) => event === "postgres_changes");
    expect(change.payload.ids.sort()).toEqual([...new Set(result.map(({ id }) => id))].sort());
    await fixture.owner.query("delete from news");
  });

  test.each([
    [{}],
    [{ postgres_changes: null }],
    [{ postgres_changes: [null] }],
    [undefined],
    [{ private: "no", broadcast: 7 }],
  ])("ignores fields that are missing or invalid: %j", async (config) => {
    const client = await open();
    const { payload } = await client.reply(
      client.say("realtime:y", "phx_join", config === undefined ? {} : { config }),
    );
    expect(payload).toEqual(ok({ postgres_changes: [] }));
  });

  test("works in version 1.0.0 too", async () => {
    const client = await open({ version: "1.0.0" });
    expect((await client.join("realtime:x", { postgres_changes: [NEWS] })).payload.status).toBe("ok");
    await fixture.owner.query("insert into news (id) values (2); delete from news");
    const change = await client.until(({ event }) => event === "postgres_changes");
    expect(change).toMatchObject({
      topic: "realtime:x",
      ref: null,
      payload: { data: { type: "INSERT", record: { id: 2 } } },
    });
  });

  test("to a joined topic closes the earlier channel first", async () => {
    const client = await open();
    const first = client.say("realtime:x", "phx_join", { config: { postgres_changes: [NEWS] } });
    const second = client.say("realtime:x", "phx_join", { config: { postgres_changes: [NEWS] } });
    await client.reply(second);
    const closed = await client.until(({ event }) => event === "phx_close");
    expect(closed).toMatchObject({ joinRef: first, ref: first });
    expect(client.items.indexOf(closed)).toBeLessThan(client.items.findIndex(({ ref }) => ref === second));
    await fixture.owner.query("insert into news (id) values (3)");
    await client.join("realtime:z", { postgres_changes: [NEWS] });
    await fixture.owner.query("delete from news");
    await client.until(({ topic, payload }) => topic === "realtime:z" && payload.data?.type === "DELETE");
    const result = client.items.filter(({ topic, event }) => topic === "realtime:x" && event === "postgres_changes");
    expect(result.map(({ payload }) => payload.data.type)).toEqual(["INSERT", "DELETE"]);
  });

  test("is rejected without a name, above the limit, and with an invalid token", async () => {
    const client = await open();
    expect((await client.join("realtime:")).payload).toEqual(refused("TopicNameRequired: "));
    expect((await client.join("elsewhere")).payload).toEqual(refused("TopicNameRequired: "));
    const forged = { access_token: `${token({ role: "anon" })}x` };
    expect((await client.join("realtime:x", {}, forged)).payload).toEqual(refused("JwtSignatureError: "));
    const older = { user_token: forged.access_token };
    expect((await client.join("realtime:x", {}, older)).payload).toEqual(refused("JwtSignatureError: "));
    expect((await client.join("realtime:x", {}, { access_token: "" })).payload).toEqual(refused("MalformedJWT: "));
    expect((await client.join("realtime:x", {}, { access_token: "neither" })).payload).toEqual(
      refused("MalformedJWT: The token provided is not a valid JWT"),
    );
    const key = { access_token: "sb_publishable_something" };
    for (const name of ["a", "b", "c"])
      expect((await client.join(`realtime:${name}`, {}, key)).payload.status).toBe("ok");
    expect((await client.join("realtime:d")).payload).toEqual(refused("ChannelRateLimitReached: Too many channels"));
    await client.reply(client.say("realtime:a", "phx_leave", {}));
    expect((await client.join("realtime:d")).payload.status).toBe("ok");
  });

  test("gets no changes for an invalid filter or column list, and only the key for an empty list", async () => {
    const join = async (more: object) => {
      const client = await open();
      await client.join("realtime:x", { postgres_changes: [{ ...NEWS, ...more }] });
      const { payload } = await client.until(({ event }) => event === "system");
      return { client, status: payload.status };
    };
    for (const more of [{ filter: 7 }, { filter: ["id=eq.1"] }, { select: "id" }, { select: {} }])
      expect(await join(more)).toMatchObject({ status: "error" });
    const own = { toString: 1, valueOf: 1 };
    for (const more of [
      { event: own },
      { schema: own },
      { table: own },
      { filter: own },
      { select: own },
      { select: [own] },
    ])
      expect(await join(more)).toMatchObject({ status: "error" });
    expect(await join({ filter: null, select: null })).toMatchObject({ status: "ok" });
    const { client } = await join({ select: [] });
    await fixture.owner.query("insert into news (id, title) values (4, 'x')");
    const result = await client.until(({ payload }) => payload.data?.type === "INSERT");
    expect(result.payload.data).toMatchObject({ columns: [{ name: "id", type: "int4" }], record: { id: 4 } });
    expect(Object.keys(result.payload.data.record)).toEqual(["id"]);
    await fixture.owner.query("delete from news");
  });

  test("counts against the limit while it is in progress", async () => {
    const client = await open();
    const refs = ["a", "b", "c", "d", "e"].map((name) => client.say(`realtime:${name}`, "phx_join", {}));
    const replies = await Promise.all(refs.map((ref) => client.reply(ref)));
    expect(replies.map(({ payload }) => payload.status)).toEqual(["ok", "ok", "ok", "error", "error"]);
  });

  test("that waits for an unavailable table is rejected", async () => {
    const client = await open();
    const config = { postgres_changes: [{ ...NEWS, table: "absent" }], postgres_changes_options: { wait: true } };
    expect((await client.join("realtime:x", config)).payload).toEqual(refused("RealtimeDisabledForConfiguration: "));
    const { payload } = await client.join("realtime:x", { ...config, postgres_changes: [NEWS] });
    expect(payload.status).toBe("ok");
  });
});

describe("a channel", () => {
  test("that the client leaves is acknowledged, and then closed; also one that was never joined", async () => {
    const client = await open();
    const join = await client.join("realtime:x");
    const leave = client.say("realtime:x", "phx_leave", {}, { joinRef: join.ref });
    const answer = await client.reply(leave);
    expect(answer).toMatchObject({ joinRef: join.ref, payload: ok() });
    const closed = await client.until(({ event }) => event === "phx_close");
    expect(closed).toMatchObject({ joinRef: join.ref, ref: join.ref, payload: {} });
    expect((await client.reply(client.say("realtime:never", "phx_leave", {}))).payload).toEqual(ok());
  });

  test("that was joined again is not closed by a leave of the earlier join", async () => {
    const client = await open();
    const first = await client.join("realtime:x");
    const second = await client.join("realtime:x");
    const late = client.say("realtime:x", "phx_leave", {}, { joinRef: first.ref });
    const leave = client.say("realtime:x", "phx_leave", {}, { joinRef: second.ref });
    await client.reply(leave);
    await client.until(({ event, joinRef }) => event === "phx_close" && joinRef === second.ref);
    expect(client.items.some(({ ref }) => ref === late)).toBe(false);
  });

  test("that is not joined accepts no messages", async () => {
    const client = await open();
    const said = client.say("realtime:never", "broadcast", { type: "broadcast", event: "x", payload: {} });
    expect((await client.reply(said)).payload).toEqual(refused("unmatched topic"));
  });

  test("with presence is sent the state at once, even when it is empty", async () => {
    const client = await open();
    await client.join("realtime:x", { presence: { enabled: true, key: "me" } });
    expect((await client.until(({ event }) => event === "presence_state")).payload).toEqual({});
    const track = (payload: Payload) =>
      client.reply(client.say("realtime:x", "presence", { type: "presence", event: "track", payload }));
    expect((await track({ name: "A" })).payload).toEqual(ok());
    expect((await track("A")).payload).toEqual({
      status: "error",
      response: { reason: "Presence track payload must be a map" },
    });
    const came = await client.until(({ event }) => event === "presence_diff");
    expect(came.payload).toEqual({
      joins: { me: { metas: [{ name: "A", phx_ref: expect.any(String) }] } },
      leaves: {},
    });
    await track({ name: "B" });
    const changed = await client.until(({ payload }) => payload.joins?.me?.metas[0].name === "B");
    const { phx_ref: before } = came.payload.joins.me.metas[0];
    expect(changed.payload).toEqual({
      joins: { me: { metas: [{ name: "B", phx_ref: expect.any(String), phx_ref_prev: before }] } },
      leaves: { me: { metas: [{ name: "A", phx_ref: before }] } },
    });
  });

  test("without presence is sent the state when it tracks", async () => {
    const [first, second] = [await open(), await open()];
    await first.join("realtime:x", { presence: { enabled: true, key: 7 } });
    await first.reply(first.say("realtime:x", "presence", { event: "track", payload: { name: "A" } }));
    await second.join("realtime:x", { presence: { enabled: false, key: "b" } });
    for (const name of ["B", "C"])
      await second.reply(second.say("realtime:x", "presence", { event: "track", payload: { name } }));
    const result = second.items.filter(({ event }) => event.startsWith("presence_"));
    expect(result.map(({ event, payload }) => [event, Object.keys(payload.joins ?? payload)])).toEqual([
      ["presence_state", ["7"]],
      ["presence_diff", ["b"]],
      ["presence_diff", ["b"]],
    ]);
  });

  test("receives nothing for a presence that is tracked again unchanged", async () => {
    const client = await open();
    await client.join("realtime:x", { presence: { key: "me" } });
    for (const payload of [
      { name: "A", at: [1] },
      { at: [1], name: "A" },
      { name: "A", at: [2] },
    ]) {
      const reply = await client.reply(client.say("realtime:x", "presence", { event: "track", payload }));
      expect(reply.payload).toEqual(ok());
    }
    const result = client.items.filter(({ event }) => event === "presence_diff");
    expect(result.map(({ payload }) => payload.joins.me.metas[0].at)).toEqual([[1], [2]]);
  });

  test("whose client replaces its token by an empty one is closed with the reason", async () => {
    const client = await open();
    await client.join("realtime:x", {}, { user_token: token({ role: "authenticated" }) });
    client.say("realtime:x", "access_token", { access_token: null });
    client.say("realtime:x", "access_token", { access_token: "" });
    const system = await client.until(({ event }) => event === "system");
    expect(system.payload).toMatchObject({ status: "error", message: "The token provided is not a valid JWT" });
    await client.until(({ event }) => event === "phx_close");
  });

  test("leaves the topic when its connection is reset", async () => {
    const watcher = await open();
    await watcher.join("realtime:x");
    const goes = await open();
    await goes.join("realtime:x", { presence: { key: "gone" } });
    await goes.reply(goes.say("realtime:x", "presence", { event: "track", payload: {} }));
    goes.socket.terminate();
    await watcher.until(({ payload }) => payload.leaves?.gone !== undefined);
  });

  test("is shared by clients of both versions, but only version 2.0.0 receives bytes", async () => {
    const [old, young] = [await open({ version: "1.0.0" }), await open()];
    for (const client of [old, young]) await client.join("realtime:x");
    old.say("realtime:x", "broadcast", { type: "broadcast", event: "from old", payload: { a: 1 } });
    const [frame] = await young.binary.count(1);
    expect(frame!.subarray(5).toString()).toBe('realtime:xfrom old{"a":1}');
    young.socket.send(
      Buffer.concat([Buffer.from([3, 1, 1, 10, 1, 0, 0]), Buffer.from("11realtime:xb"), Buffer.from([255])]),
    );
    young.socket.send(Buffer.concat([Buffer.from([3, 1, 1, 10, 1, 0, 1]), Buffer.from('12realtime:xj{"b":2}')]));
    await old.until(({ payload }) => payload.event === "j");
    expect(old.items.filter(({ event }) => event === "broadcast")).toEqual([
      expect.objectContaining({ ref: null, payload: { type: "broadcast", event: "j", payload: { b: 2 } } }),
    ]);
  });
});

describe("a broadcast as text", () => {
  const FORMS = [
    { x: 1, y: 2, type: "broadcast", event: "flat" },
    { type: "broadcast", event: "more", payload: { a: 1 }, id: "7" },
    { type: "broadcast", event: "bare" },
    { event: "untyped", payload: [1] },
    {},
  ];

  test("arrives unchanged, with all fields beside the event and its payload", async () => {
    const other = await serve(fixture.database);
    const young = await open();
    const old = await open({ version: "1.0.0" });
    const far = await open({}, other.url);
    for (const client of [young, old, far]) await client.join("realtime:forms");
    const sayer = await open();
    await sayer.join("realtime:forms", { broadcast: { ack: true } });
    for (const form of FORMS) {
      expect((await sayer.reply(sayer.say("realtime:forms", "broadcast", form))).payload).toEqual(ok());
    }
    for (const client of [young, old, far]) {
      const result = await client.count(1 + FORMS.length);
      expect(result.slice(1).map(({ event, payload }) => [event, payload])).toEqual(
        FORMS.map((form) => ["broadcast", form]),
      );
    }
    await Promise.all(clients.splice(0).map((client) => client.close()));
    await other.stop();
  });

  test("keeps a payload that is null", async () => {
    const [old, young] = [await open({ version: "1.0.0" }), await open()];
    for (const client of [old, young]) await client.join("realtime:x");
    young.say("realtime:x", "broadcast", { type: "broadcast", event: "null", payload: null });
    const { payload } = await old.until(({ event }) => event === "broadcast");
    expect(payload).toEqual({ type: "broadcast", event: "null", payload: null });
  });

  test.each([
    ["1.0.0", '"id":1234567890123456789'],
    ["2.0.0", '"id":1234567890123456789'],
    ["2.0.0", '"x":1.0'],
    ["2.0.0", '"x":1e400'],
    ["2.0.0", '"x":-0'],
  ] as const)("spells a number as it was, in version %s: %s", async (version, numbers) => {
    const hears = await open({ version: "1.0.0" });
    const texts: string[] = [];
    hears.socket.on("message", (data: Buffer) => texts.push(data.toString()));
    const sayer = await open({ version });
    for (const client of [hears, sayer]) await client.join("realtime:x");
    const said = '{"type":"broadcast","event":"id","payload":{' + numbers + ',"text":"}"}}';
    sayer.socket.send(
      version === "1.0.0"
        ? `{"topic":"realtime:x","event":"broadcast","payload":${said},"ref":"9","join_ref":"1"}`
        : `["1","9","realtime:x","broadcast",${said}]`,
    );
    await hears.until(({ event }) => event === "broadcast");
    expect(texts.at(-1)).toBe(`{"topic":"realtime:x","event":"broadcast","payload":${said},"ref":null}`);
  });

  test("whose event is not a string reaches no subscriber, as clients cannot parse it", async () => {
    const [hears, sayer] = [await open(), await open()];
    for (const client of [hears, sayer]) await client.join("realtime:x");
    sayer.say("realtime:x", "broadcast", { type: "broadcast", event: 5, payload: {} });
    sayer.say("realtime:x", "broadcast", { event: "last" });
    const result = await hears.until(({ event }) => event === "broadcast");
    expect(result.payload).toEqual({ event: "last" });
  });
});

test("a broadcast whose policies cannot be evaluated leaves the socket open", async () => {
  await fixture.owner.query(`create policy hear on realtime.messages for select to anon using (true);
    create policy speak on realtime.messages for insert to anon with check (pg_sleep(600) is not null)`);
  const client = await open();
  await client.join("realtime:x", { private: true, broadcast: { ack: true } });
  const said = client.say("realtime:x", "broadcast", { type: "broadcast", event: "hi", payload: {} });
  const isCancelled = async () => {
    const { rows } = await fixture.owner.query(`select pg_cancel_backend(pid) from pg_stat_activity
      where datname = current_database() and wait_event = 'PgSleep'`);
    return rows.length > 0;
  };
  await until(isCancelled);
  expect((await client.reply(said)).payload.status).toBe("error");
  expect((await client.reply(client.say("phoenix", "heartbeat", {}))).payload.status).toBe("ok");
  await fixture.owner.query("drop policy hear on realtime.messages; drop policy speak on realtime.messages");
});

test("a broadcast that is not JSON reaches no subscriber, as it could end one message and start another", async () => {
  const [victim, sayer] = [await open({ version: "1.0.0" }), await open()];
  for (const client of [victim, sayer]) await client.join("realtime:x");
  const say = (payload: string) =>
    sayer.socket.send(Buffer.concat([Buffer.from([3, 1, 1, 10, 1, 0, 1]), Buffer.from(`12realtime:xj${payload}`)]));
  say('{}},"event":"phx_close","payload":{"a":{}');
  say('{"a":1}');
  const result = await victim.until(({ event }) => event !== "phx_reply");
  expect(result).toMatchObject({ event: "broadcast", payload: { payload: { a: 1 } } });
});

test("a broadcast of the maximum length disconnects no subscriber", async () => {
  const [hears, sayer] = [await open(), await open()];
  for (const client of [hears, sayer]) await client.join("realtime:x");
  const payload = `"${"x".repeat(4.5 * 2 ** 20)}"`;
  sayer.socket.send(Buffer.concat([Buffer.from([3, 1, 1, 10, 1, 0, 1]), Buffer.from(`12realtime:xj${payload}`)]));
  const [frame] = await hears.binary.count(1);
  expect(frame!.length).toBeGreaterThan(payload.length);
  expect((await hears.reply(hears.say("phoenix", "heartbeat", {}))).payload.status).toBe("ok");
});

test("a filter that fails affects only its own channel", async () => {
  // Such values can be parsed, but not compared.
  await fixture.owner.query(`create type public.odd as (data json);
    create table public.odds (id int primary key, odd odd); grant select on public.odds to anon`);
  const [asks, hears] = [await open(), await open()];
  const ODDS = { ...NEWS, table: "odds" };
  await asks.join("realtime:x", { postgres_changes: [{ ...ODDS, filter: "odd=lt.({})" }] });
  await hears.join("realtime:x", { postgres_changes: [ODDS] });
  await fixture.owner.query("insert into odds values (1, row('{}'))");
  await hears.until(({ payload }) => payload.data?.record.id === 1);
  await asks.until(({ event }) => event === "phx_error");
  expect(hears.items.filter(({ event }) => event === "phx_error")).toEqual([]);
  await fixture.owner.query("drop table odds; drop type odd");
});

test("texts are equal where the column's collation treats them as equal", async () => {
  await fixture.owner.query(`
    create collation public.lenient (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
    create table public.words (id int primary key, word text collate lenient); grant select on public.words to anon`);
  const client = await open();
  const filters = ["word=eq.TEN", "word=neq.TEN", "word=in.(x,Ten)"];
  const { payload } = await client.join("realtime:x", {
    postgres_changes: filters.map((filter) => ({ ...NEWS, table: "words", filter })),
  });
  const ids = payload.response.postgres_changes.map(({ id }: { id: number }) => id);
  await fixture.owner.query("insert into words values (1, 'ten'), (2, 'eleven'), (3, 'TEN')");
  await client.until(({ payload }) => payload.data?.record.id === 3);
  const result = client.items.flatMap(({ payload }) => (payload.data ? [payload.ids] : []));
  expect(result).toEqual([[ids[0], ids[2]], [ids[1]], [ids[0], ids[2]]]);
  await fixture.owner.query("drop table words; drop collation lenient");
});

test.each([
  [
    "the function that a policy calls",
    `create function public.reader() returns text stable begin atomic select auth.jwt() ->> 'team'; end;
     grant execute on function public.reader to authenticated;
     create policy select_own on public.sheets for select using (reader = reader())`,
    "create or replace function public.reader() returns text stable begin atomic select auth.jwt() ->> 'sub'; end",
    "drop table sheets; drop function reader()",
  ],
  [
    "the row security of a table that a policy reads",
    `create schema inner_room; grant usage on schema inner_room to authenticated;
     create table inner_room.readers (reader text); grant select on inner_room.readers to authenticated;
     insert into inner_room.readers values ('ada');
     create policy select_known on public.sheets for select using (reader in (select reader from inner_room.readers))`,
    `create policy select_own on inner_room.readers for select using (reader = auth.jwt() ->> 'sub');
     alter table inner_room.readers enable row level security`,
    "drop table sheets; drop schema inner_room cascade",
  ],
])(
  "when %s changes, subscribers with different results are no longer checked together",
  async (_, before, after, clean) => {
    await fixture.owner.query(`create table public.sheets (id int primary key, reader text);
    alter table public.sheets enable row level security; grant select on public.sheets to authenticated; ${before}`);
    const [ada, bob] = await Promise.all(
      ["ada", "bob"].map((sub) => open({ key: token({ role: "authenticated", sub, team: "one" }) })),
    );
    for (const client of [ada!, bob!]) {
      await client.join("realtime:x", { postgres_changes: [{ ...NEWS, table: "sheets" }, NEWS] });
    }
    await fixture.owner.query(
      "grant select on news to authenticated; insert into sheets values (1, 'one'), (2, 'ada')",
    );
    await fixture.owner.query("insert into news (id) values (1)");
    for (const client of [ada!, bob!]) await client.until(({ payload }) => payload.data?.table === "news");
    await fixture.owner.query(after);
    await fixture.owner.query("insert into sheets values (3, 'ada')");
    await ada!.until(({ payload }) => payload.data?.record.id === 3);
    await fixture.owner.query("insert into news (id) values (2)");
    await bob!.until(({ payload }) => payload.data?.table === "news" && payload.data.record.id === 2);
    const result = bob!.items.flatMap(({ payload }) =>
      payload.data?.table === "sheets" ? [payload.data.record.id] : [],
    );
    expect(result).toHaveLength(1);
    expect(result).not.toContain(3);
    await fixture.owner.query(`delete from news; ${clean}`);
  },
);

test("the old row of a partition that logs only its key is that key, and it is sent only where no policy applies", async () => {
  await fixture.owner.query(`
    create table public.parts (id int primary key, hidden text) partition by range (id);
    create table public.low_parts partition of public.parts for values from (0) to (10);
    create table public.high_parts partition of public.parts for values from (10) to (20);
    alter table public.low_parts replica identity default;
    alter table public.parts enable row level security; grant select on public.parts to anon, service_role;
    create policy select_shown on public.parts for select using (hidden is null)`);
  const [bound, free] = [await open(), await open({ key: token({ role: "service_role" }) })];
  for (const client of [bound, free])
    await client.join("realtime:x", { postgres_changes: [{ ...NEWS, table: "parts" }] });
  await fixture.owner.query("insert into parts values (1, 'x'), (11, 'x')");
  await fixture.owner.query("update parts set id = id + 1; delete from parts; insert into parts values (3, null)");
  const result = async (client: RawClient) => {
    await client.until(({ payload }) => payload.data?.record?.id === 3);
    const data = client.items.flatMap(({ payload }) => payload.data ?? []);
    return data.filter(({ type }) => type !== "INSERT").map(({ type, old_record: old }) => [type, old]);
  };
  expect(await result(free)).toEqual([
    ["UPDATE", { id: 1 }],
    ["UPDATE", { id: 11, hidden: "x" }],
    ["DELETE", { id: 2 }],
    ["DELETE", { id: 12, hidden: "x" }],
  ]);
  expect(await result(bound)).toEqual([]);
  await fixture.owner.query("drop table parts");
});

test.each([
  ["closed", "revoke select on closed from anon; grant select (id) on closed to anon"],
  ["dropped", "alter table dropped drop mark"],
  ["renamed", "alter table renamed rename mark to sign"],
  ["retyped", "alter table retyped alter mark drop default, alter mark type int using 7, alter mark set default 7"],
])("a filter by a column that has been %s matches nothing, and its channel ends", async (table, alter) => {
  await fixture.owner.query(`create table public.${table} (id int primary key, mark text default '7');
    grant select on public.${table} to anon`);
  const [filters, hears] = [await open(), await open()];
  await filters.join("realtime:x", { postgres_changes: [{ ...NEWS, table, filter: "mark=eq.7" }] });
  await hears.join("realtime:x", { postgres_changes: [{ ...NEWS, table }] });
  await fixture.owner.query(alter);
  await fixture.owner.query(`insert into ${table} (id) values (1)`);
  await hears.until(({ event }) => event === "postgres_changes");
  const { payload } = await filters.until(({ payload }) => payload.status === "error");
  expect(payload.message).toMatch(/^Changes may have been missed: a column of .* was revoked, altered or dropped/);
  await filters.until(({ event }) => event === "phx_error");
  expect(filters.items.filter(({ event }) => event === "postgres_changes")).toEqual([]);
  await fixture.owner.query(`drop table ${table}`);
});

test("a policy reads a virtual column though it is not in the log", async () => {
  await fixture.owner.query(`create table public.levels (id int primary key, level int,
      hidden bool generated always as (level > 5) virtual);
    alter table public.levels enable row level security; grant select on public.levels to anon;
    create policy select_shown on public.levels for select using (hidden is not true)`);
  const client = await open();
  await client.join("realtime:x", { postgres_changes: [{ ...NEWS, table: "levels" }] });
  await fixture.owner.query("insert into levels values (1, 9), (2, 1)");
  const result = await client.until(({ event }) => event === "postgres_changes");
  expect(result.payload.data.record).toEqual({ id: 2, level: 1 });
  await fixture.owner.query("drop table levels");
});

test("a policy that fails hides the row, and its subscribers are notified that changes may have been missed", async () => {
  await fixture.owner.query(`create table public.shares (id int primary key, part int);
    alter table public.shares enable row level security; grant select on public.shares to anon;
    create policy odd on public.shares for select using (1 / part > 0)`);
  const client = await open();
  await client.join("realtime:x", { postgres_changes: [{ ...NEWS, table: "shares" }] });
  await fixture.owner.query("insert into shares values (1, 0)");
  const result = await client.until(
    ({ payload }) => payload.status === "error" && payload.extension === "postgres_changes",
  );
  expect(result.payload.message).toMatch(/^Changes may have been missed: .*division by zero/);
  await client.until(({ event }) => event === "phx_error");
  expect(client.items.filter(({ event }) => event === "postgres_changes")).toEqual([]);
  // The channel can be joined again, and a row for which the policy does not fail arrives.
  await client.join("realtime:x", { postgres_changes: [{ ...NEWS, table: "shares" }] });
  await fixture.owner.query("insert into shares values (2, 1)");
  await client.until(({ payload }) => payload.data?.record.id === 2);
  await fixture.owner.query("drop table shares");
});

test("a policy that takes too long does not delay others for long, and its subscribers are notified", async () => {
  await fixture.owner.query(`create table public.dear (id int primary key, word text);
    alter table public.dear enable row level security; grant select on public.dear to anon, service_role;
    create policy slow on public.dear for select using (pg_sleep(30) is not null)`);
  const [waits, sees] = [await open(), await open({ key: token({ role: "service_role" }) })];
  for (const client of [waits, sees])
    await client.join("realtime:x", { postgres_changes: [{ ...NEWS, table: "dear" }] });
  const result = async (id: number) => {
    const startedAt = performance.now();
    await fixture.owner.query("insert into dear values ($1)", [id]);
    await sees.until(({ payload }) => payload.data?.record.id === id);
    return performance.now() - startedAt;
  };
  expect(await result(1)).toBeGreaterThan(1_900);
  const refused = await waits.until(({ event, payload }) => event === "system" && payload.status === "error");
  expect(refused.payload.message).toMatch(/^Changes may have been missed: .*dear/);
  await waits.until(({ event }) => event === "phx_error");
  // The next check of the same policy has a shorter time limit.
  await waits.join("realtime:x", { postgres_changes: [{ ...NEWS, table: "dear" }] });
  expect(await result(2)).toBeLessThan(1_900);
  await fixture.owner.query("drop table dear");
});

describe("a publication that leaves out a column", () => {
  const change = (table: string) => ({ postgres_changes: [{ ...NEWS, table }] });

  beforeAll(async () => {
    await fixture.owner.query(`create table public.files (id int primary key, name text, hidden bool, size int);
      alter table public.files enable row level security; grant select on public.files to anon, service_role;
      create policy shown on public.files for select using (hidden is not true);
      alter table public.files replica identity default;
      alter publication supabase_realtime drop table public.files;
      alter publication supabase_realtime add table public.files (id, name)`);
  });
  afterAll(() => fixture.owner.query("drop table files"));

  test("that policies read discloses no rows that they could hide", async () => {
    const [named, every, server] = [await open(), await open(), await open({ key: token({ role: "service_role" }) })];
    await named.join("realtime:x", change("files"));
    expect((await named.until(({ event }) => event === "system")).payload).toMatchObject({ status: "error" });
    await every.join("realtime:x", { postgres_changes: [{ event: "*", schema: "public" }] });
    await server.join("realtime:x", change("files"));
    await fixture.owner.query(
      "insert into files values (1, 'a', true), (2, 'b', false); insert into news (id) values (1)",
    );
    await server.until(({ payload }) => payload.data?.record?.id === 2);
    await every.until(({ payload }) => payload.data?.table === "news");
    expect(every.items.filter(({ payload }) => payload.data?.table === "files")).toEqual([]);
    await fixture.owner.query("delete from news");
  });

  test("cannot be filtered by it, and may leave out columns that no policy reads", async () => {
    const server = await open({ key: token({ role: "service_role" }) });
    await server.join("realtime:x", { postgres_changes: [{ ...NEWS, table: "files", filter: "size=gt.1" }] });
    expect((await server.until(({ event }) => event === "system")).payload).toMatchObject({ status: "error" });
    await fixture.owner.query("alter publication supabase_realtime drop table public.files");
    await fixture.owner.query("alter publication supabase_realtime add table public.files (id, name, hidden)");
    const client = await open();
    await client.join("realtime:x", change("files"));
    await fixture.owner.query("insert into files values (3, 'a', true), (4, 'b', false)");
    const result = await client.until(({ event }) => event === "postgres_changes");
    expect(result.payload.data.record).toEqual({ id: 4, name: "b", hidden: false });
  });
});

describe("a socket", () => {
  test("survives invalid messages, and answers heartbeats", async () => {
    const client = await open();
    for (const text of ["", "x", "[]", "{}", '["1","1","realtime:x",7,{}]']) client.socket.send(text);
    client.socket.send(Buffer.from([9, 9, 9]));
    const { payload, topic } = await client.reply(client.say("phoenix", "heartbeat", {}));
    expect([topic, payload]).toEqual(["phoenix", ok()]);
  });

  test.each([
    [401, ""],
    [401, "?apikey=nonsense"],
    [401, `?apikey=${token({ role: "anon", exp: 1_000 })}`],
    [400, `?apikey=${anonKey}&vsn=3.0.0`],
  ])("is refused with %i for %s", async (status, query) => {
    const socket = new WebSocket(`${fixture.service.url.replace("http", "ws")}/realtime/v1/websocket${query}`);
    const [, response] = await once(socket, "unexpected-response");
    expect(response.statusCode).toBe(status);
    let body = "";
    for await (const chunk of response) body += chunk;
    expect(JSON.parse(body)).toEqual({ error: expect.any(String) });
    socket.on("error", () => {});
    socket.terminate();
  });

  test("is closed with a code when the service stops", async () => {
    const service = await serve(fixture.database);
    const client = await open({}, service.url);
    await client.join("realtime:x", { postgres_changes: [NEWS] });
    const closed = once(client.socket, "close");
    await service.stop();
    expect((await closed)[0]).toBe(1001);
    clients.splice(0);
  });
});

test("without a change stream, table changes are rejected with the reason, and everything else works", async () => {
  const database = await cloneDatabase("empty");
  const owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  await owner.query("create table public.news (id int primary key); grant select on public.news to anon");
  await owner.end();
  const service = await serve(database);
  const client = await open({}, service.url);
  const { payload } = await client.join("realtime:x", { postgres_changes: [NEWS] });
  expect(payload).toEqual(refused("RealtimeDisabledForConfiguration: Changes are not streamed"));
  const hears = await open({}, service.url);
  await hears.join("realtime:y");
  await client.join("realtime:y");
  client.say("realtime:y", "broadcast", { type: "broadcast", event: "hi", payload: {} });
  expect((await hears.binary.count(1))[0]!.toString()).toContain("hi");
  const sendBatch = (batch: readonly object[]) =>
    fetch(`${service.url}/realtime/v1/api/broadcast`, {
      method: "POST",
      headers: { apikey: anonKey, "Content-Type": "application/json" },
      body: JSON.stringify({ messages: batch }),
    });
  const half = { topic: "y", event: "half", payload: {} };
  // The permission of the second message cannot be read without the table of messages.
  expect((await sendBatch([half, { ...half, private: true }])).status).toBe(403);
  // The messages are more than a client may leave unread, but it reads them.
  const messages = Array.from({ length: 10 }, () => ({
    topic: "y",
    event: "much",
    payload: { x: "x".repeat(80_000) },
  }));
  const closed = once(hears.socket, "close").then(([code]) => code);
  const answers = await Promise.all(Array.from({ length: 10 }, () => sendBatch(messages)));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([202]));
  expect(await Promise.race([hears.binary.count(101), closed])).toHaveLength(101);
  expect(hears.binary.items.filter((frame) => frame.includes("half"))).toEqual([]);
  await Promise.all(clients.splice(0).map((each) => each.close()));
  await service.stop();
  await database.drop();
});

import type { RealtimePostgresChangesPayload } from "@supabase/supabase-js";
import { afterEach, describe, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { Inbox } from "../realtime/inbox.ts";
import { type Client, clientOf, makeClient, openRealtimeFixture, subscribed } from "../realtime/service.ts";

// biome-ignore lint/suspicious/noExplicitAny: rows of unknown tables.
type Payload = RealtimePostgresChangesPayload<any>;
type TestResponse = { extension: string; status: string; message: string };

const clients: Client[] = [];

const fixture = useFixture(openRealtimeFixture);
afterEach(async () => {
  for (const client of clients.splice(0)) await client.realtime.disconnect();
});

const run = (statement: string, values?: unknown[]) => fixture.owner.query(statement, values);
const anonymous = () => keep(makeClient(fixture.service.url));
const known = async (claims: object) => keep(await clientOf(fixture.service.url, claims));

function keep(client: Client): Client {
  clients.push(client);
  return client;
}

/** Collects every message to a client about a table; `end` is the last change, which everybody sees. */
async function listen(client: Client, filter: object, name: string = crypto.randomUUID()) {
  const result = new Inbox<Payload>();
  const system = new Inbox<TestResponse>();
  const channel = client
    .channel(name)
    // biome-ignore lint/suspicious/noExplicitAny: the overloads want each event by itself.
    .on("postgres_changes", { event: "*", schema: "public", ...filter } as any, result.put)
    .on("system", {}, system.put);
  await subscribed(channel);
  return { told: result, system, channel };
}

describe("changes of a table, with supabase-js", () => {
  test("every type of change arrives with the new row and the old row", async () => {
    const { told: result, system } = await listen(anonymous(), { table: "news" });
    await run(`insert into news values (1, 'One', true, '{a,"b c"}', '{"x":[1]}', '2026-01-02 03:04:05.678+00', 1.50)`);
    await run("update news set title = 'Uno' where id = 1");
    await run("delete from news where id = 1");
    const [inserted, updated, deleted] = await result.count(3);
    const row = {
      id: 1,
      title: "One",
      seen: true,
      tags: ["a", "b c"],
      data: { x: [1] },
      at: "2026-01-02T03:04:05.678+00:00",
      price: 1.5,
    };
    expect(inserted).toMatchObject({
      eventType: "INSERT",
      schema: "public",
      table: "news",
      new: row,
      old: {},
      errors: null,
    });
    expect(updated).toMatchObject({ eventType: "UPDATE", new: { ...row, title: "Uno" }, old: row });
    expect(deleted).toMatchObject({ eventType: "DELETE", new: {}, old: { ...row, title: "Uno" } });
    expect(inserted!.commit_timestamp).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    expect(system.items).toEqual([
      expect.objectContaining({ extension: "postgres_changes", status: "ok", message: "Subscribed to PostgreSQL" }),
    ]);
  });

  test("each listener receives its own event, on any table of the schema if none is named", async () => {
    const heard = new Inbox<string>();
    const channel = anonymous().channel("kinds");
    for (const event of ["INSERT", "UPDATE", "DELETE", "*"] as const) {
      // biome-ignore lint/suspicious/noExplicitAny: the overloads want each event by itself.
      channel.on("postgres_changes", { event, schema: "public" } as any, (payload: Payload) =>
        heard.put(`${event}: ${payload.eventType} ${payload.table}`),
      );
    }
    await subscribed(channel);
    await run(
      "insert into news (id) values (2); update news set title = 'x' where id = 2; delete from news where id = 2",
    );
    await heard.count(6);
    expect(heard.items.sort()).toEqual(
      ["*: DELETE", "*: INSERT", "*: UPDATE", "DELETE: DELETE", "INSERT: INSERT", "UPDATE: UPDATE"].map(
        (each) => `${each} news`,
      ),
    );
  });

  test.each([
    ["id=eq.11", [11]],
    ["id=neq.11", [10, 12, 13]],
    ["id=lt.12", [10, 11]],
    ["id=lte.12", [10, 11, 12]],
    ["id=gt.12", [13]],
    ["id=gte.12", [12, 13]],
    ["price=lt.9.5", [11]],
    ["price=eq.10", [10]],
    ["price=neq.10", [11, 12]],
    ['title=in.(ten,"twelve, or so")', [10, 12]],
    ["title=like.t%25", []],
    ["title=like.t%", [10, 12]],
    ["title=ilike.ELEV%", [11]],
    ["title=match.^t", [10, 12]],
    ["title=imatch.^ELEVEN$", [11]],
    ["title=is.null", [13]],
    ["title=not.is.null", [10, 11, 12]],
    ["seen=is.true", [10]],
    ["seen=eq.true", [10]],
    ["seen=is.unknown", [12, 13]],
    ["seen=isdistinct.true", [11, 12, 13]],
    ["price=isdistinct.10", [11, 12, 13]],
    ["price=isdistinct.null", [10, 11, 12]],
    ["price=not.isdistinct.NULL", [13]],
    ["title=not.in.(ten,eleven)", [12]],
    ["id=gt.10, id=lt.13, seen=is.false", [11]],
    ["at=gte.2026-06-01", [11]],
    ["tags=eq.{a}", [10]],
    ["", [10, 11, 12, 13]],
  ])("the filter %s matches %j", async (filter, ids) => {
    const { told: result } = await listen(anonymous(), { table: "news", filter });
    const everything = await listen(anonymous(), { table: "news", event: "INSERT" });
    await run(`insert into news (id, title, seen, price, at, tags) values
      (10, 'ten', true, 10.00, '2026-01-01', '{a}'), (11, 'eleven', false, 9.49, '2026-12-01', '{b}'),
      (12, 'twelve, or so', null, 12, null, null), (13, null, null, null, null, null)`);
    // A control, and behind it all that was to come has come: the later channel is told later.
    expect((await everything.told.count(4)).map((payload) => payload.new.id)).toEqual([10, 11, 12, 13]);
    await result.count(ids.length);
    expect(result.items.map((payload) => (payload.new as { id: number }).id)).toEqual(ids);
    await run("delete from news");
  });

  test("a table of which another server stores a part is refused: its changes would be missing without a word", async () => {
    await run(`
      create table measurements (id int, at date) partition by range (at);
      create table measurements_here partition of measurements for values from ('2026-01-01') to ('2027-01-01');
      grant select on measurements to anon`);
    const system = async () => (await (await listen(anonymous(), { table: "measurements" })).system.count(1))[0];
    expect(await system()).toMatchObject({ status: "ok" });
    await run(`
      create foreign data wrapper elsewhere; create server elsewhere foreign data wrapper elsewhere;
      create foreign table measurements_there partition of measurements
        for values from ('2025-01-01') to ('2026-01-01') server elsewhere`);
    expect(await system()).toMatchObject({ status: "error" });
    await run("drop foreign data wrapper elsewhere cascade; drop table measurements");
  });

  test.each([
    { table: "news", filter: "nothing=eq.1" },
    { table: "news", filter: "id=eq.one" },
    { table: "news", filter: "id=like.1%" },
    { table: "news", filter: "id=almost.1" },
    { table: "news", filter: "title=match.(" },
    { table: "notes", filter: "secret=eq.x" },
    { table: "absent" },
    { table: "users", schema: "auth" },
    { table: "news", select: ["nothing"] },
  ])("an invalid subscription is reported, and the channel stays joined: %j", async (request) => {
    const { system, told: result } = await listen(await known({ role: "authenticated", sub: "alice" }), request);
    const [said] = await system.count(1);
    expect(said).toMatchObject({ extension: "postgres_changes", status: "error" });
    expect(said!.message).toContain("Unable to subscribe to changes with given parameters");
    expect(result.items).toEqual([]);
  });

  test("a selection has those columns and the key", async () => {
    const { told: result } = await listen(anonymous(), { table: "news", select: ["title"] });
    await run("insert into news (id, title, seen) values (20, 'x', true); delete from news where id = 20");
    const [inserted, deleted] = await result.count(2);
    expect([inserted!.new, deleted!.old]).toEqual([
      { id: 20, title: "x" },
      { id: 20, title: "x" },
    ]);
  });

  test("each user receives her own rows, in the columns that she may read, and nothing of the others", async () => {
    const alice = await listen(await known({ role: "authenticated", sub: "alice" }), { table: "notes" });
    const bob = await listen(await known({ role: "authenticated", sub: "bob" }), { table: "notes" });
    const server = await listen(await known({ role: "service_role" }), { table: "notes" });
    const anonymousClient = await listen(anonymous(), { table: "notes" });
    await run("insert into notes (id, owner, body, secret) values (1, 'alice', 'hers', 's'), (2, 'bob', 'his', 's')");
    await run("update notes set body = 'changed'");
    await run("delete from notes");
    // The control: the rows did exist, and whom no policy binds is told of both.
    expect(await server.told.count(6)).toMatchObject([
      { new: { id: 1, secret: "s" } },
      { new: { id: 2 } },
      { eventType: "UPDATE" },
      { eventType: "UPDATE" },
      { old: { id: 1, body: "changed", secret: "s" } },
      { old: { id: 2 } },
    ]);
    expect(await alice.told.count(3)).toMatchObject([
      { eventType: "INSERT", new: { id: 1, owner: "alice", body: "hers", price: null } },
      { eventType: "UPDATE", new: { body: "changed" }, old: { body: "hers" } },
      { eventType: "DELETE", old: { id: 1, owner: "alice", body: "changed" } },
    ]);
    expect(JSON.stringify(alice.told.items)).not.toContain("secret");
    expect((await bob.told.count(3)).map(({ eventType }) => eventType)).toEqual(["INSERT", "UPDATE", "DELETE"]);
    expect(JSON.stringify(bob.told.items)).not.toContain("alice");
    expect(anonymousClient.told.items).toEqual([]);
    expect(anonymousClient.system.items).toMatchObject([{ status: "error" }]);
  });

  test("a row that becomes invisible is sent as deleted, and one that becomes visible as updated", async () => {
    const alice = await listen(await known({ role: "authenticated", sub: "alice" }), { table: "notes" });
    const bob = await listen(await known({ role: "authenticated", sub: "bob" }), { table: "notes" });
    await run("insert into notes (id, owner, body) values (3, 'alice', 'handed on')");
    await run("update notes set owner = 'bob' where id = 3");
    await run("delete from notes where id = 3");
    expect(await alice.told.count(2)).toMatchObject([
      { eventType: "INSERT", new: { id: 3 } },
      { eventType: "DELETE", new: {}, old: { id: 3, owner: "alice" } },
    ]);
    expect(await bob.told.count(2)).toMatchObject([
      { eventType: "UPDATE", new: { id: 3, owner: "bob" }, old: {} },
      { eventType: "DELETE", old: { id: 3, owner: "bob" } },
    ]);
    expect((bob.told.items[0] as Payload).old).toEqual({});
  });

  test("a policy is checked for the row as of the change, though it is deleted by then", async () => {
    const alice = await listen(await known({ role: "authenticated", sub: "alice" }), { table: "notes" });
    await run(`begin; insert into notes (id, owner) values (4, 'alice'); update notes set owner = 'bob' where id = 4;
      update notes set owner = 'alice' where id = 4; delete from notes where id = 4; commit`);
    expect((await alice.told.count(4)).map(({ eventType }) => eventType)).toEqual([
      "INSERT",
      "DELETE",
      "UPDATE",
      "DELETE",
    ]);
  });

  test("a policy, a grant and a column apply to later changes, in the same transaction too", async () => {
    const { told: result } = await listen(anonymous(), { table: "news" });
    await run(
      "begin; alter table news add column extra text; insert into news (id, extra) values (30, 'seen'); commit",
    );
    await result.count(1);
    await run("begin; alter table news enable row level security; insert into news (id) values (31); commit");
    await run("create policy later on news for select using (id > 32)");
    await run("insert into news (id) values (32), (33)");
    await result.count(2);
    await run("revoke select on news from anon; grant select (id) on news to anon");
    await run("insert into news (id, extra) values (34, 'unseen')");
    await result.count(3);
    await run(
      "alter table news disable row level security; grant select on news to anon; alter table news drop column extra",
    );
    await run("delete from news where id = 31");
    const items = await result.count(4);
    expect(items.map(({ eventType, new: row, old }) => [eventType, eventType === "DELETE" ? old : row])).toEqual([
      ["INSERT", expect.objectContaining({ id: 30, extra: "seen" })],
      ["INSERT", expect.objectContaining({ id: 33 })],
      ["INSERT", { id: 34 }],
      ["DELETE", expect.objectContaining({ id: 31 })],
    ]);
    await run("drop policy later on news; delete from news");
  });

  test("a table that is created after the subscription sends changes", async () => {
    const { told: result } = await listen(anonymous(), {});
    await run("create table public.late (id int primary key); grant select on public.late to anon");
    await run("insert into late values (1)");
    expect((await result.until(({ table }) => table === "late")).new).toEqual({ id: 1 });
    await run("alter publication supabase_realtime drop table public.late");
    const { system } = await listen(anonymous(), { table: "late" });
    expect(await system.count(1)).toMatchObject([{ status: "error" }]);
    await run("drop table late");
  });

  test("without a primary key, or without the right to read it, there is an error instead of the row", async () => {
    await run(`create table public.bare (word text); grant select on public.bare to anon;
      create table public.locked (id int primary key, word text); grant select (word) on public.locked to anon`);
    const bare = await listen(anonymous(), { table: "bare" });
    const locked = await listen(anonymous(), { table: "locked" });
    await run("insert into bare values ('x'); insert into locked values (1, 'x')");
    expect(await bare.told.count(1)).toMatchObject([{ errors: ["Error 400: Bad Request, no primary key"], new: {} }]);
    expect(await locked.told.count(1)).toMatchObject([{ errors: ["Error 401: Unauthorized"], new: {} }]);
    await run("drop table bare, locked");
  });

  test("a change that is too large arrives without its long values", async () => {
    const { told: result } = await listen(anonymous(), { table: "news" });
    await run(
      "insert into news (id, title, data) values (40, 'short', to_jsonb(repeat('x', 2000000))); delete from news",
    );
    const [inserted, deleted] = await result.count(2);
    expect(inserted).toMatchObject({ errors: ["Error 413: Payload Too Large"], new: { id: 40, title: "short" } });
    expect(inserted!.new).not.toHaveProperty("data");
    expect(deleted).toMatchObject({ errors: ["Error 413: Payload Too Large"] });
  });

  test("unchanged large values of an update are sent", async () => {
    await run(
      `insert into news (id, title) select 41, string_agg(md5(n::text), '') from generate_series(1, 2000) as n`,
    );
    const { told: result } = await listen(anonymous(), { table: "news" });
    await run("update news set seen = true where id = 41");
    const [updated] = await result.count(1);
    expect((updated!.new as { title: string }).title).toHaveLength(64_000);
    await run("delete from news");
  });

  test("two channels and a second client do not disturb each other, and a removed channel receives nothing more", async () => {
    const client = anonymous();
    const one = await listen(client, { table: "news" }, "one");
    const two = await listen(client, { table: "news", filter: "id=gt.50" }, "two");
    const other = await listen(anonymous(), { table: "news" }, "one");
    await run("insert into news (id) values (50), (51)");
    await other.told.count(2);
    expect([(await one.told.count(2)).length, (await two.told.count(1)).length]).toEqual([2, 1]);
    expect(await client.removeChannel(one.channel)).toBe("ok");
    await run("insert into news (id) values (52)");
    await two.told.count(2);
    await other.told.count(3);
    expect([one.told.items.length, two.told.items.length]).toEqual([2, 2]);
    await run("delete from news");
  });

  test("all changes arrive in the order of the commits, without those that were rolled back", async () => {
    const { told: result } = await listen(anonymous(), { table: "news", event: "INSERT" });
    await run("insert into news (id) select n from generate_series(100, 1099) as n");
    await run("begin; insert into news (id) values (1); rollback");
    await run("insert into news (id) select n from generate_series(1100, 1199) as n");
    const items = await result.count(1_100);
    expect(items.map((payload) => (payload.new as { id: number }).id)).toEqual(
      Array.from({ length: 1_100 }, (_, at) => at + 100),
    );
    await run("delete from news");
  });
});

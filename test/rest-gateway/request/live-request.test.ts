import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { EventClient } from "../../live/queries/event-client.ts";
import { anonKey, openRealtimeFixture, token } from "../../realtime/service.ts";
import { until } from "../../until.ts";

const SCHEMA = `
  create table public.teams (id int primary key, name text);
  create table public.members (team int references public.teams, person text, primary key (team, person));
  create table public.tasks (
    id int primary key, team int references public.teams, title text, amount numeric, at timestamptz default now());
  create function public.is_member(wanted int) returns bool language sql stable security definer set search_path = ''
    as 'select exists (select from public.members where team = wanted and person = auth.jwt() ->> ''sub'')';
  grant execute on function public.is_member to anon, authenticated;
  alter table public.tasks enable row level security;
  create policy select_of_team on public.tasks for select using (public.is_member(team));
  alter table public.teams enable row level security;
  create policy select_of_member on public.teams for select
    using (exists (select from public.members where team = id and person = (select auth.jwt() ->> 'sub')));
  alter table public.members enable row level security;
  create policy select_own on public.members for select using (person = (select auth.jwt() ->> 'sub'));
  create view public.open_tasks with (security_invoker = true) as select id, title from public.tasks;
  create view public.recent_tasks with (security_invoker = true) as
    select * from public.tasks where at > now() - interval '1 day';
  create function public.counted() returns bigint language sql as 'select count(*) from public.tasks';
  create function public.composed() returns bigint language plpgsql stable
    as 'declare n bigint; begin execute ''select count(*) from public.tasks'' into n; return n; end';
  grant execute on function public.counted, public.composed to anon, authenticated;
  create function public.tasks_since(since timestamptz) returns setof public.tasks language sql stable
    as 'select * from public.tasks where at > since';
  create function public.tasks_called(title text) returns setof public.tasks language sql stable
    as 'select * from public.tasks where title = tasks_called.title';
  grant execute on function public.tasks_since, public.tasks_called to anon, authenticated;
  create extension if not exists btree_gist;
  grant execute on function int4_dist to anon;
  create table public.pins (id int primary key);
  create table public.news (id int primary key, title text);
  create table public.unpublished (id int primary key);
  create table public.counters (id bigint primary key, value bigint);
  create materialized view public.totals as select count(*) from public.tasks;
  grant select on all tables in schema public to anon, authenticated;
  insert into public.teams values (1, 'one'), (2, 'two');
  insert into public.tasks (id, team, title) select n, 1 + n % 2, 'task ' || n from generate_series(1, 6) n;
  insert into public.members values (1, 'ann'), (2, 'bob');
  insert into public.news values (1, 'first');
  insert into public.counters values (1, 9007199254740993)`;

const clients: EventClient[] = [];

const fixture = useFixture(() => openRealtimeFixture(SCHEMA));
beforeAll(() => fixture.owner.query("alter publication supabase_realtime drop table public.unpublished"));
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
});

const as = (person: string, claims: object = {}) => ({
  apikey: anonKey,
  authorization: `Bearer ${token({ sub: person, role: "authenticated", ...claims })}`,
});
const sql = (text: string) => fixture.owner.query(text);

async function open(path: string, headers: Readonly<Record<string, string>> = { apikey: anonKey }) {
  const client = await EventClient.open(`${fixture.service.url}${path}`, headers);
  clients.push(client);
  await until(() => client.events.length > 0);
  return client;
}

async function refusal(path: string, headers: Readonly<Record<string, string>> = { apikey: anonKey }) {
  const response = await fetch(`${fixture.service.url}${path}`, {
    headers: { accept: "text/event-stream", ...headers },
  });
  return [response.status, (await response.json()) as { code: string; message: string }] as const;
}

test("a snapshot is followed by a JSON Patch for each commit that changes the result", async () => {
  const client = await open("/rest/v1/news?select=id,title&order=id");
  expect(client.events[0]).toMatchObject({ event: "snapshot", data: [{ id: 1, title: "first" }] });
  await sql("insert into public.news values (0, 'zero')");
  await client.untilResult([
    { id: 0, title: "zero" },
    { id: 1, title: "first" },
  ]);
  await sql("update public.news set title = 'none' where id = 0");
  await client.untilResult([
    { id: 0, title: "none" },
    { id: 1, title: "first" },
  ]);
  await sql("delete from public.news where id = 0");
  await client.untilResult([{ id: 1, title: "first" }]);
  expect(client.events.map(({ event }) => event)).toEqual(["snapshot", "change", "change", "change"]);
  expect(client.events[2]!.data).toEqual([{ op: "replace", path: "/0/title", value: "none" }]);
});

test("embedded rows, filters, order and limit are part of the result", async () => {
  const query = "/rest/v1/teams?select=name,tasks(title)&tasks.order=id.desc&tasks.limit=1&id=in.(1,2)";
  const client = await open(query, as("ann"));
  expect(client.result).toEqual([{ name: "one", tasks: [{ title: "task 6" }] }]);
  await sql("insert into public.tasks (id, team, title) values (7, 1, 'newest')");
  await client.untilResult([{ name: "one", tasks: [{ title: "newest" }] }]);
  await sql("delete from public.tasks where id = 7");
  await client.untilResult([{ name: "one", tasks: [{ title: "task 6" }] }]);
});

test("rows come and go with a membership that a policy reads through a function", async () => {
  const client = await open("/rest/v1/open_tasks?select=id&order=id", as("ann"));
  expect(client.result).toEqual([{ id: 2 }, { id: 4 }, { id: 6 }]);
  await sql("insert into public.members values (2, 'ann')");
  await client.untilResult([1, 2, 3, 4, 5, 6].map((id) => ({ id })));
  await sql("delete from public.members where person = 'ann' and team = 1");
  await client.untilResult([1, 3, 5].map((id) => ({ id })));
  await sql("delete from public.members where person = 'ann'; insert into public.members values (1, 'ann')");
  await client.untilResult([2, 4, 6].map((id) => ({ id })));
});

test("callers share a result only while their rows are the same by the policies", async () => {
  const [ann, bob] = await Promise.all(["ann", "bob"].map((person) => open("/rest/v1/news?select=title", as(person))));
  await sql("update public.news set title = 'shared'");
  await Promise.all([ann!, bob!].map((client) => client.untilResult([{ title: "shared" }])));
  // Both in one transaction: the row is never one that bob could read.
  await sql(`begin; alter table public.news enable row level security;
    create policy select_of_ann on public.news for select using (auth.jwt() ->> 'sub' = 'ann');
    update public.news set title = 'for ann'; commit`);
  await ann!.untilResult([{ title: "for ann" }]);
  await bob!.untilResult([]);
  await sql("update public.news set title = 'still for ann'");
  await ann!.untilResult([{ title: "still for ann" }]);
  expect(JSON.stringify(bob!.events)).not.toContain("for ann");
  await sql("drop policy select_of_ann on public.news; alter table public.news disable row level security");
  await bob!.untilResult([{ title: "still for ann" }]);
});

test("a revoked privilege ends the query, and says why", async () => {
  const client = await open("/rest/v1/counters?select=id", as("ann"));
  await sql("revoke select on public.counters from authenticated");
  await until(() => client.isOver);
  expect(client.events.at(-1)).toMatchObject({ event: "end", data: { code: "42501" } });
  await sql("grant select on public.counters to authenticated");
});

describe("without an event that reports a change of what callers may read", () => {
  beforeAll(async () => {
    await sql(`create role readers; create role editors;
      create table public.drafts (id int primary key, title text);
      alter table public.drafts enable row level security;
      create policy select_of_editors on public.drafts for select to editors using (true);
      insert into public.drafts values (1, 'first');
      grant select on public.drafts to readers;
      grant readers, editors to authenticated`);
    await until(async () => {
      const { ok, body } = await fetch(`${fixture.service.url}/rest/v1/drafts`, { headers: as("ann") });
      await body?.cancel();
      return ok;
    });
  });
  afterAll(() => sql("drop table public.drafts; drop owned by readers, editors; drop role readers, editors"));

  const follow = async () => {
    const client = await open("/rest/v1/drafts?select=title", as("ann"));
    expect(client.events[0]).toMatchObject({ event: "snapshot", data: [{ title: "first" }] });
    return client;
  };

  test("a result follows a role that the caller gets and loses", async () => {
    const client = await follow();
    await sql("revoke editors from authenticated");
    await client.untilResult([]);
    await sql("grant editors to authenticated");
    await client.untilResult([{ title: "first" }]);
  });

  test("each connection has the policies of the roles that the caller has", async () => {
    const client = await follow();
    const readByMany = async () => {
      const read = async () =>
        (await fetch(`${fixture.service.url}/rest/v1/drafts?select=title`, { headers: as("ann") })).text();
      return new Set(await Promise.all(Array.from({ length: 60 }, read)));
    };
    expect(await readByMany()).toEqual(new Set(['[{"title":"first"}]']));
    await sql("revoke editors from authenticated");
    await client.untilResult([]);
    expect(await readByMany()).toEqual(new Set(["[]"]));
    await sql("grant editors to authenticated");
    await client.untilResult([{ title: "first" }]);
    expect(await readByMany()).toEqual(new Set(['[{"title":"first"}]']));
  });

  test("a result follows a policy that is changed where event triggers are off", async () => {
    const client = await follow();
    const change = (condition: string) =>
      sql(
        `begin; set local event_triggers = off; alter policy select_of_editors on public.drafts using (${condition}); commit`,
      );
    await change("id > 1");
    await client.untilResult([]);
    await change("true");
    await client.untilResult([{ title: "first" }]);
  });

  test("privileges that go with what their role owns end the query", async () => {
    const client = await follow();
    await sql("drop owned by readers");
    await until(() => client.isOver);
    expect(client.events.at(-1)).toMatchObject({ event: "end", data: { code: "42501" } });
    await sql("grant select on public.drafts to readers");
  });
});

test("numbers keep all digits", async () => {
  const response = await fetch(`${fixture.service.url}/rest/v1/counters?select=value`, {
    headers: { accept: "text/event-stream", apikey: anonKey },
  });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = String((await reader.read()).value);
  await sql("update public.counters set value = value + 1");
  while (!text.includes("event: change")) text += String((await reader.read()).value);
  expect(text).toContain('[{"op":"replace","path":"/0/value","value":9007199254740994}]');
  await reader.cancel();
});

test("one row in the resource interface is null while it does not exist", async () => {
  const client = await open("/api/v1/news/1", { accept: "text/event-stream", ...as("ann") });
  expect(client.result).toMatchObject({ id: 1 });
  await sql("delete from public.news where id = 1");
  await client.untilResult(null);
  await sql("insert into public.news values (1, 'again')");
  await client.untilResultIs((result) => JSON.stringify(result).includes("again"));
  expect((await refusal("/api/v1/news/99", as("ann")))[0]).toBe(404);
});

test("a filter by a distance is none by the column's value", async () => {
  const client = await open("/rest/v1/pins?select=id&id=distance(5).eq.2");
  await sql("insert into public.pins values (7)");
  await client.untilResult([{ id: 7 }]);
});

describe("Last-Event-ID", () => {
  const path = "/rest/v1/teams?select=name&order=id";
  // One token: another one has other claims, such as the time of its issue.
  const bob = as("bob");

  let renamed = 0;
  const rename = (name: string) => sql(`update public.teams set name = '${name}' where id = 2`);

  async function resume(lastId: string, headers = bob): Promise<EventClient> {
    const client = await EventClient.open(`${fixture.service.url}${path}`, { ...headers, "last-event-id": lastId });
    clients.push(client);
    return client;
  }

  /** Roles belong to the cluster, so that any database can change what a caller may read: then a stream begins anew. */
  async function withoutSnapshot(follow: (name: string) => Promise<EventClient>) {
    for (;;) {
      const name = `renamed ${renamed++}`;
      const client = await follow(name);
      await until(() => client.events.length > 0);
      if (client.events[0]!.event !== "snapshot") return { client, name };
    }
  }
  const closedStream = async () => {
    const client = await open(path, bob);
    client.close();
    return client.lastId;
  };

  test("continues with what has changed since", async () => {
    const { client, name } = await withoutSnapshot(async (name) => {
      const lastId = await closedStream();
      await rename(name);
      return resume(lastId);
    });
    expect(client.events).toMatchObject([{ event: "change", data: [{ op: "replace", path: "/0/name", value: name }] }]);
  });

  test.each([
    ["of another caller", as("ann"), () => closedStream()],
    ["from long ago", bob, async () => "0/1"],
  ])("%s begins with a snapshot", async (_which, headers, lastId) => {
    const client = await resume(await lastId(), headers);
    await until(() => client.events.length > 0);
    expect(client.events[0]).toMatchObject({ event: "snapshot" });
  });

  test("of an unchanged result is followed by a comment, and then by the next change", async () => {
    const { client, name } = await withoutSnapshot(async (name) => {
      const client = await resume(await closedStream());
      await until(() => client.comments === 1 || client.events.length > 0);
      expect(client.events.filter(({ event }) => event !== "snapshot")).toEqual([]);
      await rename(name);
      return client;
    });
    expect(client.comments).toBe(1);
    expect(client.events[0]).toMatchObject({ event: "change", data: [{ op: "replace", value: name }] });
  });
});

test("a token that expires ends the query", async () => {
  const client = await open("/rest/v1/teams?select=name", as("ann", { exp: Math.floor(Date.now() / 1000) - 28 }));
  await until(() => client.isOver);
  expect(client.events.at(-1)).toMatchObject({ event: "end", data: { code: "AUTH_EXPIRED" } });
});

test.each([
  ["/rest/v1/recent_tasks", "time"],
  ["/rest/v1/tasks?at=lte.now", "time"],
  ["/rest/v1/tasks?at=not.gte.TODAY%2010:00", "time"],
  ["/rest/v1/tasks?at=in.(2026-01-01,yesterday)", "time"],
  ["/rest/v1/tasks?or=(id.eq.1,at.lt.now)", "time"],
  ["/rest/v1/teams?select=name,tasks(id)&tasks.at=lt.tomorrow", "time"],
  ["/rest/v1/rpc/tasks_since?since=now", "time"],
  ["/rest/v1/rpc/counted", "volatile"],
  ["/rest/v1/rpc/composed", "composes"],
  ["/rest/v1/unpublished", "publication"],
  ["/rest/v1/totals", "materialized view"],
])("%s cannot be live, and the error says why", async (path, reason) => {
  const [status, { code, message }] = await refusal(path, as("ann"));
  expect({ status, code, message }).toMatchObject({
    status: 400,
    code: "NOT_LIVE",
    message: expect.stringContaining(reason),
  });
});

test("a filter of the resource interface by a time that passes cannot be live", async () => {
  expect(await refusal("/api/v1/tasks?at=today", as("ann"))).toMatchObject([400, { error: { code: "NOT_LIVE" } }]);
});

test.each(["/rest/v1/tasks?title=eq.now", "/rest/v1/rpc/tasks_called?title=today", "/rest/v1/tasks?at=lte.2026-01-01"])(
  "%s names no time that passes",
  async (path) => {
    expect((await open(path, as("ann"))).events).toMatchObject([{ event: "snapshot", data: [] }]);
  },
);

test("a caller has a limited number of live queries, and others are served", async () => {
  const path = "/rest/v1/news?select=id";
  for (let tens = 0; tens < 10; tens++) await Promise.all(Array.from({ length: 10 }, () => open(path, as("dan"))));
  expect(await refusal(path, as("dan"))).toMatchObject([429, { code: "RATE_LIMITED" }]);
  await open(path, as("eva"));
  clients[0]!.close();
  await until(async () => {
    const again = await EventClient.open(`${fixture.service.url}${path}`, as("dan")).catch(() => null);
    again?.close();
    return again !== null;
  });
});

test("errors are those of the request", async () => {
  expect(await refusal("/rest/v1/teams?select=missing", as("ann"))).toMatchObject([400, { code: "42703" }]);
  expect((await refusal("/rest/v1/missing", as("ann")))[0]).toBe(404);
  expect((await refusal("/rest/v1/teams", { apikey: anonKey, authorization: "Bearer x.y.z" }))[0]).toBe(401);
});

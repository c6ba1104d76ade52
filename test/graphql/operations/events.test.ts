import { setTimeout as sleep } from "node:timers/promises";
import { createClient, type ExecutionResult } from "graphql-ws";
import { afterEach, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { useFixture } from "../../fixture.ts";
import { serveGraphQL, tokenFor } from "../../graphql.ts";
import { Wire } from "../server/socket/wire.ts";

const NOTES = `
  create table public.notes (
    id bigint generated always as identity constraint notes_pkey primary key,
    owner_id bigint not null default auth.uid(), text text not null);
  alter table public.notes enable row level security;
  create policy own on public.notes using (owner_id = (select auth.uid()));
  grant select, insert, update on public.notes to authenticated;
  grant select (id) on public.notes to anon;
  create trigger _500_event after insert or update on public.notes
    for each row execute function content_service.tg__event('owner_id');
  comment on table public.notes is
    e'@subscription onNoteAdded on:insert notNull\\n@subscription onNoteChanged on:update by:id?';
  insert into public.users (name, email) values ('Ann', 'ann@example.org'), ('Bob', 'bob@example.org');
  insert into public.articles (author_id, title, content) values (1, 'First one', '');`;

const ends: (() => unknown)[] = [];
const graphql = useFixture(() => serveGraphQL({ before: NOTES }));
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
  await expect.poll(() => graphql.service.graphql.state()).toMatchObject({ sockets: 0, subscriptions: 0, topics: 0 });
});

/** A subscription that has begun. */
async function subscribe(query: string, token?: string) {
  const client = createClient({
    url: graphql.socketUrl,
    webSocketImpl: WebSocket,
    retryAttempts: 0,
    connectionParams: token === undefined ? {} : { Authorization: `Bearer ${token}` },
  });
  ends.push(() => client.dispose());
  const { subscriptions } = graphql.service.graphql.state();
  const results = client.iterate({ query });
  await expect.poll(() => graphql.service.graphql.state().subscriptions).toBe(subscriptions + 1);
  return {
    async next(): Promise<ExecutionResult> {
      const { done, value } = await results.next();
      if (done) throw new Error("it has ended");
      return value as ExecutionResult;
    },
    isOver: async () => (await results.next()).done,
  };
}

const note = (owner: number, text: string) =>
  graphql.sql("insert into public.notes (owner_id, text) values ($1, $2)", [owner, text]);
const titles = (count: number, prefix: string) =>
  graphql.sql(
    "insert into public.articles (author_id, title, content) select 1, $2 || number, '' from generate_series(1, $1) as number",
    [count, prefix],
  );

describe("an event", () => {
  test("reaches subscribers that may see its row, and no others", async () => {
    const query = "subscription { onNoteAdded { text } }";
    const [ann, bob] = [await subscribe(query, tokenFor(1)), await subscribe(query, tokenFor(2))];
    const anonymous = await Wire.open(graphql.socketUrl, "graphql-transport-ws");
    ends.push(() => anonymous.close());
    anonymous.say({ type: "connection_init" });
    expect(await anonymous.hear()).toEqual({ type: "connection_ack" });
    anonymous.say({ type: "subscribe", id: "s", payload: { query: "subscription { onNoteAdded { id } }" } });
    await expect.poll(() => graphql.service.graphql.state().subscriptions).toBe(3);
    await note(1, "hers");
    await note(2, "his");
    await note(1, "hers too");
    expect(await ann.next()).toEqual({ data: { onNoteAdded: { text: "hers" } } });
    expect(await ann.next()).toEqual({ data: { onNoteAdded: { text: "hers too" } } });
    expect(await bob.next()).toEqual({ data: { onNoteAdded: { text: "his" } } });
    // There is nothing to wait for but time.
    await sleep(200);
    expect(anonymous.unheard).toEqual([]);
  });

  test("whose field may be null is not sent as null either", async () => {
    await note(2, "before");
    const ann = await subscribe("subscription { onNoteChanged { text } }", tokenFor(1));
    await graphql.sql("update public.notes set text = 'after' where owner_id = 2");
    await note(1, "mine");
    await graphql.sql("update public.notes set text = 'mine anew' where text = 'mine'");
    expect(await ann.next()).toEqual({ data: { onNoteChanged: { text: "mine anew" } } });
  });

  test("returns the row as of its reading, once per change", async () => {
    const created = await subscribe("subscription { onArticleCreated { title author { name } } }");
    await titles(3, "In order ");
    for (const number of [1, 2, 3]) {
      expect(await created.next()).toEqual({
        data: { onArticleCreated: { title: `In order ${number}`, author: { name: "Ann" } } },
      });
    }
  });

  test("of a transaction that is rolled back is not sent", async () => {
    const created = await subscribe("subscription { onArticleCreated { title } }");
    await graphql.sql("begin");
    await titles(1, "Undone ");
    await graphql.sql("rollback");
    await titles(1, "Done at last ");
    expect(await created.next()).toEqual({ data: { onArticleCreated: { title: "Done at last 1" } } });
  });

  test("of an earlier transaction may be missed, which is reported to subscribers", async () => {
    await graphql.sql("select setval('content_service.events_awaited_until', 1)");
    await graphql.sql("begin");
    await titles(1, "Written before ");
    const created = await subscribe("subscription { onArticleCreated { title } }");
    await graphql.sql("commit");
    expect(await created.next()).toMatchObject({ errors: [{ extensions: { code: "EVENTS_MISSED" } }] });
    await titles(1, "Written after ");
    expect(await created.next()).toEqual({ data: { onArticleCreated: { title: "Written after 1" } } });
  });

  test("with an invalid payload is ignored", async () => {
    const created = await subscribe("subscription { onArticleCreated { title } }");
    for (const payload of ["", "{", "null", "[]", '{"s":1,"t":"articles","op":"insert","k":{}}', '{"s":"public"}']) {
      await graphql.sql("select pg_notify('graphql', $1)", [payload]);
    }
    await titles(1, "Real one ");
    expect(await created.next()).toEqual({ data: { onArticleCreated: { title: "Real one 1" } } });
  });

  test("of a GraphQL mutation arrives like any other", async () => {
    const created = await subscribe("subscription { onArticleCreated { title } }");
    const query = 'mutation { createArticle(input: {title: "By mutation", content: ""}) { success } }';
    expect((await graphql.ask(query, { token: tokenFor(1) })).data).toEqual({ createArticle: { success: true } });
    expect(await created.next()).toEqual({ data: { onArticleCreated: { title: "By mutation" } } });
  });
});

describe("many events at once", () => {
  test("arrive all, in their order", async () => {
    const created = await subscribe("subscription { onArticleCreated { title } }");
    await titles(5_000, "Of many ");
    for (let number = 1; number <= 5_000; number++) {
      expect(await created.next()).toEqual({ data: { onArticleCreated: { title: `Of many ${number}` } } });
    }
  });

  test("above the size of a subscriber's queue end its subscription with an error", async () => {
    const created = await subscribe("subscription { onArticleCreated { id } }");
    await titles(25_000, "Too many ");
    let result = await created.next();
    while (!result.errors) result = await created.next();
    expect(result).toMatchObject({ errors: [{ extensions: { code: "EVENTS_MISSED" } }] });
    expect(await created.isOver()).toBe(true);
    await expect.poll(() => graphql.service.graphql.state().subscriptions).toBe(0);
  });
});

describe("after the listener is disconnected", () => {
  const query = "subscription { onArticleCreated { title } }";
  const listeners = async () => {
    const rows = await graphql.sql<{ pid: number }>(
      "select pid from pg_stat_activity where application_name = 'listener' and datname = current_database()",
    );
    return rows.map(({ pid }) => pid);
  };
  const cut = async () => {
    const before = await listeners();
    await graphql.sql("select pg_terminate_backend(pid) from unnest($1::int[]) as pid", [before]);
    return before;
  };
  const isBack = (before: readonly number[]) =>
    expect.poll(async () => (await listeners()).filter((pid) => !before.includes(pid)).length).toBe(1);

  test("subscriptions continue; a number that was rolled back counts as a missed event", async () => {
    const created = await subscribe(query);
    await graphql.sql("begin");
    await titles(1, "Undone ");
    await graphql.sql("rollback");
    await isBack(await cut());
    expect(await created.next()).toMatchObject({ errors: [{ extensions: { code: "EVENTS_MISSED" } }] });
    await titles(1, "After the gap ");
    expect(await created.next()).toEqual({ data: { onArticleCreated: { title: "After the gap 1" } } });
  });

  test("events meanwhile are lost, which is reported to subscribers", async () => {
    const created = await subscribe(query);
    const pids = await listeners();
    await graphql.sql(`
      select pg_terminate_backend(${pids[0]});
      insert into public.articles (author_id, title, content) values (1, 'Missed', '')`);
    expect(await created.next()).toMatchObject({ errors: [{ extensions: { code: "EVENTS_MISSED" } }] });
    const later = await subscribe(query);
    await titles(1, "Afterwards ");
    for (const subscription of [created, later]) {
      expect(await subscription.next()).toEqual({ data: { onArticleCreated: { title: "Afterwards 1" } } });
    }
  });

  test("no gap is reported if no event was missed", async () => {
    const created = await subscribe(query);
    for (const moment of ["Before ", "Between ", "After "]) {
      await titles(1, moment);
      expect(await created.next()).toEqual({ data: { onArticleCreated: { title: `${moment}1` } } });
      await isBack(await cut());
      // The queries that it sends then are answered within a moment.
      await sleep(100);
    }
  });
});

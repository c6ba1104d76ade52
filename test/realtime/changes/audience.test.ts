import { beforeEach, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { type Message, RawClient } from "../raw-client.ts";
import { openRealtimeFixture } from "../service.ts";

const NEWS = { event: "*", schema: "public", table: "news" };

let client: RawClient;
const fixture = useFixture(openRealtimeFixture);
beforeEach(async () => {
  client = await new RawClient(fixture.service.url).opened();
  return () => client.close();
});

async function isSubscribed(topic: string, binding: object): Promise<boolean> {
  await client.join(topic, { postgres_changes: [binding] });
  const result = await client.until((message) => message.topic === topic && message.event === "system");
  return result.payload.status === "ok";
}

test.each([
  {
    what: "is no longer published",
    binding: NEWS,
    done: "alter publication supabase_realtime drop table public.news",
    undone: "alter publication supabase_realtime add table public.news",
    reason: "changes of news are no longer published",
  },
  {
    what: "is renamed",
    binding: NEWS,
    done: "alter table public.news rename to olds",
    undone: "alter table public.olds rename to news",
    reason: "changes of news are no longer published",
  },
  {
    what: "is revoked from the role",
    binding: NEWS,
    done: "revoke select on public.news from anon",
    undone: "grant select on public.news to anon",
    reason: "you may no longer read news",
  },
  {
    what: "is dropped with its publication",
    binding: { event: "*", schema: "*", table: "*" },
    done: `do $$ begin execute format('create table public.published as select format(''%%I.%%I'', schemaname, tablename) as name
        from pg_publication_tables where pubname = %L', 'supabase_realtime'); drop publication supabase_realtime; end $$`,
    undone: `do $$ begin execute (select 'create publication supabase_realtime for table ' || string_agg(name, ', ')
        || ' with (publish_via_partition_root = true)' from public.published); drop table public.published; end $$`,
    reason: "changes of any table are no longer published",
  },
])(
  "subscribers of a table that $what are notified, and subscribers of other tables are not",
  async ({ binding, done, undone, reason }) => {
    expect(await isSubscribed("realtime:followed", binding)).toBe(true);
    expect(await isSubscribed("realtime:others", { event: "*", schema: "public", table: "articles" })).toBe(true);
    await fixture.owner.query(done);
    const result = await client.until(({ payload }) => payload.message?.includes(reason));
    expect(result).toMatchObject({
      topic: "realtime:followed",
      payload: { status: "error", extension: "postgres_changes" },
    });
    const isLost = (name: string) => (message: Message) => message.topic === name && message.event === "phx_error";
    await client.until(isLost("realtime:followed"));
    if (binding === NEWS) expect(client.items.filter(isLost("realtime:others"))).toEqual([]);
    else await client.until(isLost("realtime:others"));
    await fixture.owner.query(undone);
  },
);

test("a subscriber of all tables loses no channel to a table that it may not read, and does not learn its name", async () => {
  const { owner } = fixture;
  await owner.query(
    "create table public.secret_invoices (id int primary key); create table public.memos (id int primary key)",
  );
  await owner.query("grant select on public.memos to anon");
  // A join that names a new table waits for a catalogue that has it.
  expect(await isSubscribed("realtime:memos", { ...NEWS, table: "memos" })).toBe(true);
  await client.reply(client.say("realtime:memos", "phx_leave", {}));
  expect(await isSubscribed("realtime:all", { event: "*", schema: "public", table: "*" })).toBe(true);
  await owner.query("drop table public.secret_invoices");
  await owner.query("insert into public.memos values (1)");
  await client.until(({ topic, payload }) => topic === "realtime:all" && payload.data?.table === "memos");
  await owner.query("drop table public.memos");
  const { payload } = await client.until(({ event, payload }) => event === "system" && payload.status === "error");
  expect(payload.message).toBe(
    "Changes may have been missed: changes of memos were not published for a while. Refetch your data.",
  );
});

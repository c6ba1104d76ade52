import { beforeAll, describe, expect, test } from "vitest";
import { useClient } from "../database.ts";
import { useContent } from "./content.ts";

const content = useContent();

describe("timestamps", () => {
  test.each(["users", "articles", "article_translations", "comments"])(
    "of %s: created_at stays, updated_at advances",
    async (table) => {
      const { rows: before } = await content.owner.query(`select created_at, updated_at from public.${table} limit 1`);
      await content.owner.query(`update public.${table} set created_at = 'epoch', updated_at = 'epoch'`);
      const { rows: after } = await content.owner.query(`select created_at, updated_at from public.${table} limit 1`);
      expect(after[0].created_at).toEqual(before[0].created_at);
      expect(after[0].updated_at.getTime()).toBeGreaterThan((before[0].updated_at ?? before[0].created_at).getTime());
    },
  );

  test("record when a row was changed, not when the transaction began", async () => {
    await content.owner.query("begin");
    await content.owner.query("select pg_sleep(0.01)");
    const { rows } = await content.owner.query("select clock_timestamp() as now");
    const { rows: changed } = await content.owner.query(
      "update public.users set age = 3 where id = 1 returning updated_at",
    );
    await content.owner.query("rollback");
    expect(changed[0].updated_at.getTime()).toBeGreaterThanOrEqual(rows[0].now.getTime());
  });

  test("never go back, not even within one transaction", async () => {
    await content.owner.query("begin");
    const { rows: first } = await content.owner.query(
      "update public.users set age = 1 where id = 1 returning updated_at",
    );
    const { rows: second } = await content.owner.query(
      "update public.users set age = 2 where id = 1 returning updated_at",
    );
    await content.owner.query("rollback");
    expect(second[0].updated_at.getTime()).toBeGreaterThan(first[0].updated_at.getTime());
  });
});

describe("notifications", () => {
  let heard: { channel: string; payload: unknown }[];

  const listener = useClient(content.database.ownerUrl);
  beforeAll(async () => {
    listener.on("notification", ({ channel, payload }) =>
      heard.push({ channel, payload: channel === "graphql" ? JSON.parse(payload!) : payload }),
    );
    await listener.query("listen graphql; listen pgrst");
    await content.owner.query("select content_service.await_events(3600)");
  });

  /** Returns the notifications of a statement: Postgres delivers committed ones before it answers the listener's next query. */
  async function heardOf(statement: string): Promise<unknown[]> {
    await listener.query("select");
    heard = [];
    await content.owner.query(statement);
    await listener.query("select");
    return heard.map(({ payload }) => payload);
  }

  async function lastNumber(): Promise<number> {
    const { rows } = await content.owner.query("select last_value from content_service.event_number");
    return Number(rows[0].last_value);
  }

  test.each([
    [
      "a new article",
      "insert into public.articles (title, content, author_id) values ('Five!', 'Long content', 1)",
      { s: "public", t: "articles", op: "insert", k: { id: "3" } },
    ],
    ["a changed one", "select public.publish_article(3)", { s: "public", t: "articles", op: "update", k: { id: "3" } }],
    [
      "a new comment, with its article",
      "insert into public.comments (article_id, content, author_id) values (3, 'Yes.', 1)",
      { s: "public", t: "comments", op: "insert", k: { id: "3", article_id: "3" } },
    ],
  ])("contain the keys of %s only, and a number", async (_, statement, payload) => {
    await content.owner.query('set request.jwt.claims = \'{"sub":"1"}\'');
    expect(await heardOf(statement)).toEqual([{ ...payload, n: await lastNumber() }]);
  });

  test.each(["update public.comments set content = 'No.'", "delete from public.articles where id = 3"])(
    "are not sent for: %s",
    async (statement) => {
      expect(await heardOf(statement)).toEqual([]);
    },
  );

  test("are not sent for a rolled-back change", async () => {
    expect(await heardOf("begin; update public.articles set title = 'Five!'; rollback")).toEqual([]);
  });

  test("are neither sent nor numbered without subscribers", async () => {
    const change = "update public.articles set title = 'Five and more'";
    await content.owner.query("select setval('content_service.events_awaited_until', 1)");
    const number = await lastNumber();
    expect(await heardOf(change)).toEqual([]);
    expect(await lastNumber()).toBe(number);
    await content.owner.query("select content_service.await_events(3600)");
    // The number in between is left out, for those who count.
    expect(await heardOf(change)).toContainEqual(expect.objectContaining({ n: number + 2 }));
  });

  test("support a key that is not a number and a table without id", async () => {
    await content.owner.query(`
      create table content_service.codes (code text primary key, label text);
      create trigger _500_event after delete on content_service.codes for each row execute function content_service.tg__event('code');
      insert into content_service.codes values ('a"b', 'x');
    `);
    expect(await heardOf("delete from content_service.codes")).toEqual([
      { s: "content_service", t: "codes", op: "delete", k: { code: 'a"b' }, n: await lastNumber() },
    ]);
  });

  test("name the root of a partitioned table, whichever partition has the row", async () => {
    await content.owner.query(`
      create table content_service.days (day date primary key) partition by range (day);
      create table content_service.years partition of content_service.days for values from ('2026-01-01') to ('2028-01-01')
        partition by range (day);
      create table content_service.days_2026 partition of content_service.years for values from ('2026-01-01') to ('2027-01-01');
      create trigger _500_event after insert on content_service.days for each row execute function content_service.tg__event('day');
    `);
    expect(await heardOf("insert into content_service.days values ('2026-05-01')")).toEqual([
      { s: "content_service", t: "days", op: "insert", k: { day: "2026-05-01" }, n: await lastNumber() },
    ]);
  });

  test.each([
    ["a new table", "create table public.things (id int primary key)", true],
    ["a grant", "grant select on public.things to anon", true],
    ["a policy", "create policy select_all on public.things for select using (true)", true],
    ["a comment", "comment on table public.things is 'Things.'", true],
    [
      "a materialized view",
      "create materialized view content_service.counts as select count(*) from public.things",
      true,
    ],
    ["one that is refreshed", "refresh materialized view content_service.counts", false],
    ["a temporary table", "create temporary table scratch (id serial primary key)", false],
    ["one that is dropped", "drop table scratch", false],
    ["rows", "insert into public.things values (1)", false],
    ["a dropped table", "drop table public.things cascade", true],
  ])("request a reload of the schema after %s", async (_, statement, reload) => {
    expect(await heardOf(statement)).toEqual(reload ? ["reload schema"] : []);
  });
});

describe("a new table logs whole rows", () => {
  async function identityOf(statement: string, table: string): Promise<string> {
    await content.owner.query("begin");
    await content.owner.query(statement);
    const { rows } = await content.owner.query("select relreplident from pg_class where oid = $1::regclass", [table]);
    await content.owner.query("rollback");
    return rows[0].relreplident;
  }

  test.each([
    ["made in public", "create table public.things (id int primary key)", "public.things", "f"],
    ["made from a query", "create table public.things as select 1 as id", "public.things", "f"],
    ["that is partitioned", "create table public.things (id int) partition by hash (id)", "public.things", "f"],
    [
      "of a schema that is served besides",
      "create schema shop; grant usage on schema shop to authenticated; create table shop.things (id int)",
      "shop.things",
      "f",
    ],
    ["in a schema that is closed", "create table content_service.things (id int)", "content_service.things", "d"],
    ["in schema auth", "create table auth.things (id int)", "auth.things", "d"],
    ["that is temporary", "create temporary table things (id int)", "things", "d"],
  ])("%s", async (_, statement, table, identity) => {
    expect(await identityOf(statement, table)).toBe(identity);
  });
});

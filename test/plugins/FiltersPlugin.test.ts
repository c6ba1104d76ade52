import { beforeAll, describe, expect, test } from "vitest";
import { anonymous } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

const generated = useGeneratedSchema({
  sql: `
    create table public.tickets (
      id         bigint generated always as identity primary key,
      color      text not null,
      size       integer,
      owner_id   bigint references public.users,
      labels     text[] not null default '{}',
      due_on     date,
      opened_at  timestamptz not null default now(),
      plain      text,
      details    jsonb,
      closed     boolean not null default false
    );
    create index on public.tickets (color);
    create index on public.tickets (size) where size > 0;
    create index on public.tickets (owner_id, closed);
    create index on public.tickets using gin (labels);
    create index on public.tickets (due_on);
    create index on public.tickets using brin (opened_at);
    create index on public.tickets using gin (details);
    create index on public.tickets (lower(plain));
    grant select on public.tickets to anon;
    create table public.pins (id int primary key, tags text[] not null, tag text);
    create index on public.pins using gin (tags);
    create index on public.pins (tag);
    grant select on public.pins to anon;
    create function public.pins_tagged(tag text) returns setof public.pins stable language sql
      as 'select * from public.pins where pins.tag = pins_tagged.tag or pins_tagged.tag = any (pins.tags)';
    comment on function public.pins_tagged is '@filter';
    grant execute on function public.pins_tagged to anon;
    insert into public.pins values (1, '{a}', 'b'), (2, '{b}', 'a');
    create type public.level as enum ('LOW', 'MIDDLE', 'HIGH');
    create domain public.told_level as public.level;
    create domain public.alarm_level as public.told_level check (value::public.level <> 'LOW');
    create table public.alarms (id int primary key, level public.alarm_level not null);
    comment on table public.alarms is '@order level desc';
    create index on public.alarms (level);
    grant select on public.alarms to anon;
    insert into public.alarms values (1, 'HIGH'), (2, 'MIDDLE'), (3, 'HIGH');
  `,
});
const read: typeof generated.read = (...question) => generated.read(...question);
const ask: typeof generated.ask = (...question) => generated.ask(...question);

const argumentsOf = (field: string) =>
  generated.schema
    .getQueryType()!
    .getFields()
    [field]!.args.filter(({ name }) => name !== "where" && name !== "orderBy")
    .map(({ name, type }) => `${name}: ${type}`);

beforeAll(async () => {
  await generated.owner.query(`
    insert into public.users (name, email) values ('Alice', 'alice@example.org'), ('Bob', 'bob@example.org');
    insert into public.tickets (color, owner_id, labels, due_on, opened_at) values
      ('red', 1, '{a,b}', '2026-01-01', '2026-01-01T00:00:00.123456Z'),
      ('blue', 1, '{b}', '2026-02-01', '2026-02-01Z'),
      ('red', null, '{"c d"}', null, '2026-03-01Z');
    insert into public.articles (title, content, author_id, tags, status, created_at) values
      ('About boats', 'They float.', 1, '{boat,summer}', 'PUBLISHED', '2026-01-01Z'),
      ('About gardens', 'They grow.', 2, '{garden,summer}', 'DRAFT', '2026-02-01Z'),
      ('On nothing', 'No boat here.', 1, '{}', 'DRAFT', '2026-03-01Z');
  `);
});

describe("a table", () => {
  test("is filtered by the leading columns of indexes only", () => {
    const filter = generated.schema.getType("TicketFilterInput") as unknown as {
      getFields(): Record<string, { type: unknown }>;
    };
    expect(Object.entries(filter.getFields()).map(([name, { type }]) => `${name}: ${type}`)).toEqual([
      "color: String",
      "ownerId: ID",
      "label: String",
      "dueAfter: Date",
      "dueBefore: Date",
      "openedAfter: Time",
      "openedBefore: Time",
    ]);
  });

  test("has an argument for each equality", () => {
    expect(argumentsOf("tickets")).toEqual([
      "first: Int",
      "after: String",
      "last: Int",
      "before: String",
      "color: String",
      "ownerId: ID",
      "filter: TicketFilterInput",
    ]);
  });

  test.each([
    [`color: "red"`, [1, 3]],
    [`color: "red", ownerId: 1`, [1]],
    ["color: null, ownerId: null", [1, 2, 3]],
    [`ownerId: "abc"`, []],
    ["filter: {}", [1, 2, 3]],
    ["filter: null", [1, 2, 3]],
    ["filter: { color: null, label: null }", [1, 2, 3]],
    [`filter: { color: "blue", ownerId: 1 }`, [2]],
    [`filter: { label: "b" }`, [1, 2]],
    [`filter: { label: "c d" }`, [3]],
    [`color: "red", filter: { label: "b" }`, [1]],
    [`filter: { dueAfter: "2026-01-01" }`, [2]],
    [`filter: { dueAfter: "2025-01-01", dueBefore: "2026-02-01" }`, [1]],
    [`filter: { openedAfter: "2026-01-01T00:00:00.123455Z" }`, [1, 2, 3]],
    [`filter: { openedAfter: "2026-01-01T00:00:00.123456Z" }`, [2, 3]],
    [`filter: { openedAfter: "2026-01-01T00:00:00.123Z", openedBefore: "2026-01-01T05:30:00+05:30" }`, []],
    [`filter: { openedBefore: "2026-02-01" }`, [1]],
  ])("by %s gives %j", async (filters, ids) => {
    const { tickets } = await read(anonymous, `{ tickets(${filters}) { totalCount edges { node { id } } } }`);
    expect(tickets.edges.map(({ node }: { node: { id: string } }) => Number(node.id))).toEqual(ids);
    expect(tickets.totalCount).toBe(ids.length);
  });

  test("has a name for each, where an element of a list is called as another column is", async () => {
    const answer = await read(
      anonymous,
      `{ own: pins(filter: { tag: "a" }) { ...ids } element: pins(filter: { tag_: "a" }) { ...ids }
        both: pins(filter: { tag_2: "a" }) { ...ids } }
       fragment ids on PinConnection { edges { node { id } } }`,
    );
    const pins = (...ids: string[]) => ({ edges: ids.map((id) => ({ node: { id } })) });
    expect(answer).toEqual({ own: pins("2"), element: pins("1"), both: pins("1", "2") });
  });

  test("is filtered and paged by a domain over an enum", async () => {
    const alarms = "{ edges { node { id } cursor } }";
    const idsOf = ({ edges }: { edges: { node: { id: string } }[] }) => edges.map(({ node }) => node.id);
    const { high, low, some } = await read(
      anonymous,
      `{ high: alarms(level: HIGH) ${alarms} low: alarms(filter: { level: LOW }) ${alarms} some: alarms(first: 2) ${alarms} }`,
    );
    expect([idsOf(high), idsOf(low), idsOf(some)]).toEqual([["3", "1"], [], ["3", "1"]]);
    const { rest } = await read(anonymous, `{ rest: alarms(after: "${some.edges[1].cursor}") ${alarms} }`);
    expect(idsOf(rest)).toEqual(["2"]);
  });

  test("accepts variables, absent ones too", async () => {
    const query = `query ($color: String, $filter: TicketFilterInput) { tickets(color: $color, filter: $filter) { totalCount } }`;
    expect(await read(anonymous, query, {})).toEqual({ tickets: { totalCount: 3 } });
    expect(await read(anonymous, query, { color: "red", filter: { ownerId: 1 } })).toEqual({
      tickets: { totalCount: 1 },
    });
  });

  test("refuses an invalid time", async () => {
    const query = "query ($filter: TicketFilterInput) { tickets(filter: $filter) { totalCount } }";
    const { data, faults } = await ask(anonymous, query, { filter: { openedAfter: "yesterday" } });
    expect(data).toBeUndefined();
    expect(faults).toMatchObject([{ message: expect.stringContaining("ISO 8601") }]);
  });
});

describe("a table with @filterable and @filter in its comments", () => {
  test("has those columns as arguments, and those functions among its filters", () => {
    expect(argumentsOf("articles").slice(4)).toEqual(["status: ArticleStatus", "filter: ArticleFilterInput"]);
  });

  test.each([
    ["status: DRAFT", [3, 2]],
    ["filter: { status: PUBLISHED }", [1]],
    ["filter: { authorId: 1 }", [3, 1]],
    [`filter: { tag: "summer" }`, [2, 1]],
    [`filter: { keyword: "BOAT" }`, [3, 1]],
    [`filter: { keyword: "" }`, []],
    ["filter: { keyword: null }", [3, 2, 1]],
    [`filter: { createdAfter: "2026-01-01", createdBefore: "2026-03-01" }`, [2]],
    [`status: DRAFT, filter: { keyword: "boat", authorId: 1 }`, [3]],
    [`status: DRAFT, filter: { status: PUBLISHED }`, []],
  ])("by %s gives %j", async (filters, ids) => {
    const { articles } = await read(anonymous, `{ articles(${filters}) { totalCount edges { node { id } } } }`);
    expect(articles.edges.map(({ node }: { node: { id: string } }) => Number(node.id))).toEqual(ids);
    expect(articles.totalCount).toBe(ids.length);
  });
});

test("filter values are parameters: one statement serves every value", async () => {
  const query = (color: string) => `{ tickets(color: "${color}", filter: { label: "x" }) { edges { node { id } } } }`;
  const [one, other] = [await ask(anonymous, query("red")), await ask(anonymous, query("'; drop table tickets; --"))];
  expect(one.statements).toEqual(other.statements);
});

import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { rehearseMigrations } from "../../migrate/rehearse.ts";
import { useFixture } from "../fixture.ts";
import { ownHistories } from "./own-histories.ts";

// A statement that takes long holds others, and on a loaded machine any statement may take long: here, none takes time.
beforeAll(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterAll(() => void vi.useRealTimers());

const SCHEMA = `
  create table foo (id int primary key, v int, t text);
  create table small (id int primary key, v int);
  create table log (foo int);
  create table comments (foo int references foo);
  create function lock_foo() returns void language plpgsql as 'begin perform 1 from foo for update; end';
  create function keep() returns trigger language plpgsql as 'begin return null; end';
  create table kept (id int primary key, v int);
  create trigger kept before update on kept for each row execute function keep();
`;
const ROWS = `
  insert into foo select i, i, 't' from generate_series(1, 12000) as i;
  insert into kept select i, i from generate_series(1, 12000) as i;
  insert into small select i, i from generate_series(1, 10) as i;
  analyze foo, small, log, comments, kept;
`;

const own = useFixture(() => ownHistories([]));

/** Applies the migrations to the database, with new tables, as if it were a copy. */
async function rehearse(migrations: readonly string[], withRows = true) {
  await own.rows(`drop schema public cascade; create schema public; ${SCHEMA}${withRows ? ROWS : ""}`);
  for (const [index, sql] of migrations.entries()) await own.write("project", `00${index + 1}0-part.sql`, sql);
  return rehearseMigrations(own.settings, { originalUrl: withRows ? own.settings.url : null, withRows });
}

const judge = async (sql: string, withRows?: boolean) =>
  (await rehearse([sql], withRows)).map(({ verdict }) => verdict);

describe.each([
  ["on a copy with rows", true],
  ["without rows", false],
])("%s", (_, withRows) => {
  test.each([
    "do $$ begin perform 1 from foo for update; end $$",
    "select lock_foo()",
    "insert into log select id from foo for update",
    "insert into log select id from foo for share",
    "create table made as select * from foo for update",
    "insert into foo select * from foo on conflict (id) do update set v = 0 where false",
    "update kept set v = 0",
    "update foo set v = 0 where v <= 9000",
  ])("locks of rows are found that no lock on a table shows, and hold writes: %s", async (sql) => {
    expect(await judge(sql, withRows)).toEqual(["holds writes"]);
  });

  test("locks of few rows are held until the end, so that what follows is not safe", async () => {
    const lookup = "do $$ begin perform 1 from small where id = 1 for update; end $$";
    expect(await judge(`${lookup}; select 1`, withRows)).toEqual(["brief", "brief"]);
    expect(await judge(`${lookup}; create table made as select * from foo`, withRows)).toEqual([
      "brief",
      "holds writes",
    ]);
  });

  test.each([
    ["create index on made (id)", "holds reads"],
    ["alter table made alter v type text", "holds reads"],
    ["select count(*) from made", "holds reads"],
    ["insert into made select generate_series(1, 20000)", "holds reads"],
    ["create table other as select i from generate_series(1, 20000) as i", "holds reads"],
    ["create table other (id int)", "brief"],
  ])("work under a lock counts on new tables, too: %s", async (sql, verdict) => {
    const before = "create table made as select * from foo; alter table small add column z int";
    expect(await judge(`${before}; ${sql}`, withRows)).toEqual(["safe", "brief", verdict]);
  });

  test("the work of several statements under one lock is added", async () => {
    const fill = "insert into log select i from generate_series(1, 4000) as i";
    expect(await judge(`alter table small add column z int; ${fill}; ${fill}; ${fill}; select 1`, withRows)).toEqual([
      "brief",
      "brief",
      "brief",
      "holds reads",
      "brief",
    ]);
  });
});

test("names the tables whose rows are locked, and how many", async () => {
  const [first, second] = await rehearse(["update foo set v = 0 where id <= 7; select count(*) from foo"]);
  expect(first).toMatchObject({ locks: [], lockedRows: [{ relation: "public.foo", rows: 7, isEarlier: false }] });
  expect(second).toMatchObject({
    verdict: "holds writes",
    lockedRows: [{ relation: "public.foo", rows: 7, isEarlier: true }],
    safeForm: expect.stringContaining("An earlier statement"),
  });
});

test("what is deferred until the end counts for the last statement", async () => {
  const trigger = `create function lock_small() returns trigger language plpgsql as 'begin perform 1 from small for update; return null; end';
    create constraint trigger made after insert on log deferrable initially deferred for each row execute function lock_small()`;
  const statements = await rehearse([`${trigger}; insert into log values (1); select 1`]);
  expect(statements.at(-2)!.lockedRows).toEqual([]);
  expect(statements.at(-1)!.lockedRows).toEqual([{ relation: "public.small", rows: 10, isEarlier: false }]);
});

test("an insert does not lock rows that others update, neither its own nor those that it refers to", async () => {
  const inserts = "insert into comments select id from foo; insert into small values (11, 1)";
  expect(
    await judge(`${inserts}; update small set v = 2 where id = 11; create table made as select * from foo`),
  ).toEqual(["safe", "safe", "safe", "safe"]);
});

test("what only defines a function that locks, and a block that has locked nothing, are safe", async () => {
  const statements = [
    "create function made() returns void language sql as 'update foo set v = 0'",
    "do $$ begin if exists (select from small where id = 99) then update foo set v = 0; end if; end $$",
    "do $$ begin update foo set v = 0 where id = 1; raise 'no'; exception when others then null; end $$",
  ];
  expect(await judge(statements.join("; "))).toEqual(["safe", "safe", "safe"]);
  // Without rows the block does not get to its update, so the table that it names counts.
  const [first, second] = await rehearse([statements.slice(0, 2).join("; ")], false);
  expect(first!.verdict).toBe("safe");
  expect(second!.lockedRows.map(({ relation }) => relation)).toContain("public.foo");
});

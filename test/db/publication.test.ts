import { describe, expect, test } from "vitest";
import { useContent } from "./content.ts";

const content = useContent();

async function published(): Promise<string[]> {
  const { rows } = await content.owner.query(
    `select schemaname || '.' || tablename as name from pg_publication_tables where pubname = 'supabase_realtime' order by 1`,
  );
  return rows.map(({ name }) => name);
}

/** The tables that are published after the statements, beyond those of the migrations. */
async function publishedBy(...statements: string[]): Promise<string[]> {
  await content.owner.query("begin");
  const before = await published();
  for (const statement of statements) await content.owner.query(statement);
  const after = await published();
  await content.owner.query("rollback");
  return after.filter((name) => !before.includes(name));
}

describe("the publication", () => {
  test("has the changes of served tables, and of no others", async () => {
    const { rows } = await content.owner.query(
      `select relnamespace::regnamespace || '.' || relname as name from pg_class
       where relkind in ('r', 'p') and relnamespace in ('public'::regnamespace, 'storage'::regnamespace) order by 1`,
    );
    const served = rows.map(({ name }) => name);
    expect(served).toContain("public.articles");
    expect(await published()).toEqual(served);
  });

  test("includes a new table, created by any role", async () => {
    const made = await publishedBy(
      "create role designer; grant usage, create on schema public to designer; set local role designer",
      "create table public.notes (id int primary key, title text unique, other int references public.notes)",
      "create table public.copied as select * from public.notes",
      "reset role",
    );
    expect(made).toEqual(["public.copied", "public.notes"]);
  });

  test("publishes changes of a partition as its root's", async () => {
    const made = await publishedBy(
      "create table public.parts (id int) partition by range (id)",
      "create table public.part partition of public.parts for values from (0) to (10)",
    );
    expect(made).toEqual(["public.parts"]);
  });

  test("has no changes of an inaccessible, temporary or unlogged table", async () => {
    const made = await publishedBy(
      "create table auth.secrets (id int)",
      "create temporary table passing (id int)",
      "create unlogged table public.fast (id int)",
      "create table public.control (id int)",
    );
    expect(made).toEqual(["public.control"]);
  });

  test("does not include a table again that was removed", async () => {
    await content.owner.query("begin");
    await content.owner.query("alter publication supabase_realtime drop table public.comments");
    await content.owner.query("alter table public.comments add column mood text");
    await content.owner.query("create table public.control (id int)");
    expect(await published()).not.toContain("public.comments");
    expect(await published()).toContain("public.control");
    await content.owner.query("rollback");
  });
});

describe("a table with a column that is not in the log", () => {
  const virtual = "twice int generated always as (id * 2) virtual";

  test.each([
    ["that is new", [`create table public.notes (id int primary key, ${virtual})`]],
    ["that gets one", ["create table public.notes (id int primary key)", `alter table public.notes add ${virtual}`]],
    [
      "that has partitions",
      [
        "create table public.notes (id int primary key) partition by range (id)",
        "create table public.part partition of public.notes for values from (0) to (10)",
        `alter table public.notes add ${virtual}`,
      ],
    ],
  ])("%s can be changed, and its changes are published", async (_, statements) => {
    const made = await publishedBy(
      ...statements,
      "insert into public.notes values (1); update public.notes set id = 2; delete from public.notes",
    );
    expect(made).toEqual(["public.notes"]);
  });

  test("and without a key can be changed", async () => {
    const made = await publishedBy(
      `create table public.notes (id int, ${virtual})`,
      "create table public.others (id int)",
      `alter table public.others add ${virtual}`,
      "insert into public.notes values (1); update public.notes set id = 2; delete from public.notes",
      "insert into public.others values (1); update public.others set id = 2; delete from public.others",
    );
    expect(made).toEqual([]);
  });

  test("that is stored can be changed, and its changes are published whole", async () => {
    const made = await publishedBy(
      "create table public.notes (id int, twice int generated always as (id * 2) stored)",
      "insert into public.notes values (1); update public.notes set id = 2; delete from public.notes",
    );
    expect(made).toEqual(["public.notes"]);
  });
});

test.each([
  ["that is gone", "drop publication supabase_realtime"],
  ["of all tables", "drop publication supabase_realtime; create publication supabase_realtime for all tables"],
  ["of whole schemas", "alter publication supabase_realtime set tables in schema public"],
])("a publication %s does not prevent creating tables", async (_, statement) => {
  await content.owner.query("begin");
  await content.owner.query(statement);
  await content.owner.query("create table public.notes (id int primary key)");
  const { rowCount } = await content.owner.query("select from pg_class where oid = 'public.notes'::regclass");
  expect(rowCount).toBe(1);
  await content.owner.query("rollback");
});

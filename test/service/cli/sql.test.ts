import { describe, expect, test } from "vitest";
import { useDatabase } from "../../database.ts";
import { runCommand } from "./run-command.ts";

const database = useDatabase();

const sql = (...words: string[]) => runCommand("sql", words, database);

describe("npm run sql", () => {
  test("prints the rows of each statement in columns, or how many it changed", async () => {
    const { stdout } = await sql(`
      create table public.drawers (id int, content jsonb);
      insert into public.drawers values (1, '["a"]'), (20, null);
      select id, content, id as "again" from public.drawers order by id`);
    expect(stdout).toBe(`CREATE
INSERT 2
id   content   again
1    ["a"]     1
20             20
(2 rows)
`);
  });

  test("prints values as Postgres writes them", async () => {
    const { stdout } = await sql(`
      select true, date '2026-01-31', time '12:00', timestamp '2026-01-31 12:00:00.123456', interval '1 day 2 hours', '{1,2}'::int[],
        '\\x78'::bytea, 1.10, point(1, 2), '{"a":1.10}'::json`);
    expect(stdout.split("\n")[1]!.split(/ {3,}/)).toEqual([
      "t",
      "2026-01-31",
      "12:00:00",
      "2026-01-31 12:00:00.123456",
      "1 day 02:00:00",
      "{1,2}",
      "\\x78",
      "1.10",
      "(1,2)",
      '{"a":1.10}',
    ]);
  });

  test("runs all statements or none, and prints the error of Postgres with its hint", async () => {
    const { stderr, code } = await sql("create table public.half (); select nam from public.users");
    expect(stderr).toContain('column "nam" does not exist\nPerhaps you meant to reference the column "users.name".');
    expect(code).toBe(1);
    expect((await sql("select to_regclass('public.half') as half")).stdout).toBe("half\n\n(1 row)\n");
  });

  test("prints the line of an error, and where a function raised it", async () => {
    expect((await sql("select 1;\n\nselect nam from public.users")).stderr).toContain('"nam" does not exist (line 3)');
    const raised = await sql("do $$ begin raise 'no'; end $$");
    expect(raised.stderr).toContain("no\nPL/pgSQL function inline_code_block line 1 at RAISE");
  });

  test("prints notices of Postgres", async () => {
    const { stderr, code } = await sql("drop table if exists public.nowhere; do $$ begin raise warning 'mind'; end $$");
    expect(stderr).toContain('NOTICE: table "nowhere" does not exist, skipping\nWARNING: mind\n');
    expect(code).toBe(0);
  });

  test("fails if a transaction is left open, because it is rolled back", async () => {
    const left = await sql("begin; create table public.lost ()");
    expect(left).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("Add commit") });
    expect(await sql("begin; create table public.kept (); commit")).toMatchObject({ code: 0 });
    const { stdout } = await sql("select to_regclass('public.lost') as lost, to_regclass('public.kept') as kept");
    expect(stdout).toContain("kept\n       kept\n");
  });

  test("requires SQL", async () => {
    expect(await sql(" ")).toMatchObject({ code: 2, stderr: expect.stringContaining("No SQL was given.") });
  });
});

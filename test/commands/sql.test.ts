import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cloneDatabase } from "../database.ts";
import { runCommand } from "./run-command.ts";

let database: Awaited<ReturnType<typeof cloneDatabase>>;
beforeAll(async () => {
  database = await cloneDatabase("content");
});
afterAll(() => database.drop());

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

  test("runs all or nothing, and says what Postgres says, with its hint", async () => {
    const { stderr, code } = await sql("create table public.half (); select nam from public.users");
    expect(stderr).toContain('column "nam" does not exist\nPerhaps you meant to reference the column "users.name".');
    expect(code).toBe(1);
    expect((await sql("select to_regclass('public.half') as half")).stdout).toBe("half\n\n(1 row)\n");
  });

  test("wants something to run", async () => {
    expect(await sql(" ")).toMatchObject({ code: 2, stderr: expect.stringContaining("Say what to run.") });
  });
});

import { describe, expect, test } from "vitest";
import { withClient } from "../../../postgres/client/with-client.ts";
import { cloneDatabase, useDatabase } from "../../database.ts";
import { SEED } from "../../db/callers.ts";
import { runCommand } from "./run-command.ts";

const database = useDatabase({ sql: SEED });

const policies = (...words: string[]) => runCommand("policies", words, database, { USERS_ACCESS: "open" });

/** Roles are the whole cluster's, and other tests make some too. */
const OURS = ["anon", "admin", "authenticated", "service_role"].flatMap((role) => ["--role", role]);

describe("npm run policies", () => {
  test("prints the rows of each table that each role can access, which shows changes of policies", async () => {
    const { stdout } = await policies("--sub", "1", ...OURS);
    expect(`\n${stdout}`).toMatchInlineSnapshot(`
      "
                                      anon     admin   authenticated   service_role
      article_translations   select   all 2    all 2   all 2           all 2
                             insert   -        yes     yes             yes
                             update   -        all 2   1 of 2          all 2
                             delete   -        all 2   1 of 2          all 2
      articles               select   all 2    all 2   all 2           all 2
                             insert   -        yes     yes             yes
                             update   -        all 2   1 of 2          all 2
                             delete   -        all 2   1 of 2          all 2
      comments               select   all 2    all 2   all 2           all 2
                             insert   -        yes     yes             yes
                             update   -        all 2   1 of 2          all 2
                             delete   -        all 2   1 of 2          all 2
      users                  select   all 3    all 3   all 3           all 3
                             insert   -        yes     -               yes
                             update   0 of 3   all 3   1 of 3          all 3
                             delete   0 of 3   all 3   1 of 3          all 3
      "
    `);
  });

  test("tries only the tables that are named", async () => {
    const { stdout } = await policies("comments", "public.users", "--sub", "1", "--role", "anon");
    const tables = stdout.split("\n").flatMap((line) => /^(\w+) +select/.exec(line)?.[1] ?? []);
    expect(tables).toEqual(["comments", "users"]);
    const mistyped = await policies("comment");
    expect([mistyped.code, mistyped.stderr.trim().split("\n").at(-1)]).toEqual([
      2,
      'Table "comment" is not exposed; did you mean comments?',
    ]);
  });

  test("accepts claims and an interface", async () => {
    const { stdout } = await policies("--claims", '{"sub": "2"}', "--interface", "resource");
    expect(stdout.split("\n")[0]).toMatch(/^ +anon .*\badmin +.*authenticated/);
    expect(stdout).not.toContain("pg_");
    expect(stdout).toMatch(/^users +select +all 3 .*\n +insert +yes .*\n +update +all 3 /m);
  });

  test("resolves names like requests do: in the exposed schema", async () => {
    await withClient(database.ownerUrl, (client) =>
      client.query(`
        create schema api_of_shop;
        create table api_of_shop.members (name text);
        insert into api_of_shop.members values ('7');
        create function api_of_shop.is_member() returns boolean language plpgsql stable as
          $$ begin return exists (select from members where name = auth.jwt() ->> 'sub'); end $$;
        create table api_of_shop.orders (id int primary key);
        insert into api_of_shop.orders values (1);
        alter table api_of_shop.orders enable row level security;
        create policy members on api_of_shop.orders for select using (api_of_shop.is_member());
        grant usage on schema api_of_shop to authenticated;
        grant execute on function api_of_shop.is_member to authenticated;
        grant select on api_of_shop.orders, api_of_shop.members to authenticated`),
    );
    const words = ["--role", "authenticated", "--sub", "7"];
    const { stdout } = await runCommand("policies", words, database, { PGRST_DB_SCHEMAS: "api_of_shop" });
    expect(stdout).toMatch(/^orders +select +all 1$/m);
  });

  test("continues after an unpopulated materialized view, and prints its progress", async () => {
    const many = Array.from({ length: 40 }, (_, index) => `create table many.t${index} (id int primary key);`);
    await withClient(database.ownerUrl, (client) =>
      client.query(`
        create schema many;
        grant usage on schema many to anon;
        create materialized view many.copied as select 1 as id with no data;
        grant select on many.copied to anon;
        create function many.slow() returns boolean language sql as 'select true from pg_sleep(0.05)';
        ${many.join("")}
        insert into many.t0 select generate_series(1, 30);
        alter table many.t0 enable row level security;
        create policy slow on many.t0 for select using (many.slow());
        grant execute on function many.slow to anon;
        grant select on many.t0 to anon`),
    );
    const { stdout, stderr, code } = await runCommand("policies", ["--role", "anon"], database, {
      PGRST_DB_SCHEMAS: "many",
    });
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^copied +select +no data yet\n +insert +-$/m)]);
    expect(stdout).toMatch(/^t0 +select +all 30$/m);
    expect(stderr).toMatch(/^\d+ of 41 tables\n/);
  });

  test("says so if there are no tables", async () => {
    const empty = await cloneDatabase("empty");
    try {
      const { code, stdout } = await runCommand("policies", [], empty);
      expect([code, stdout]).toEqual([0, "No tables in the exposed schemas: public.\n"]);
    } finally {
      await empty.drop();
    }
  });

  test("names the setting of an anonymous role that does not exist", async () => {
    const { code, stderr } = await runCommand("policies", [], database, { PGRST_DB_ANON_ROLE: "nobody_here" });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^Requests cannot use the role "nobody_here" .*PGRST_DB_ANON_ROLE\.\n$/);
  });

  test.each([
    [["--interface", "door"], "--interface must be one of"],
    [["--claims", "7"], "--claims must be a JSON object"],
    [["--role", "postgres"], 'Requests cannot use the role "postgres"'],
    [["nothing"], "is not exposed"],
  ])("%j fails with a message", async (words, refusal) => {
    const { stderr, code } = await policies(...words);
    expect(stderr).toContain(refusal);
    expect(code).toBe(2);
  });
});

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../engine/with-client.ts";
import { cloneDatabase } from "../database.ts";
import { SEED } from "../db/callers.ts";
import { runCommand } from "./run-command.ts";

let database: Awaited<ReturnType<typeof cloneDatabase>>;
beforeAll(async () => {
  database = await cloneDatabase("content");
  await withClient(database.ownerUrl, (client) => client.query(SEED));
});
afterAll(() => database.drop());

const policies = (...words: string[]) => runCommand("policies", words, database);

/** Roles are the whole cluster's, and other tests make some too. */
const OURS = ["anon", "admin", "authenticated", "service_role"].flatMap((role) => ["--role", role]);

describe("npm run policies", () => {
  test("prints what each role reaches of each table: a change of the policies shows here", async () => {
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

  test("takes claims, and the door by which a request comes", async () => {
    const { stdout } = await policies("--claims", '{"sub": "2"}', "--interface", "resource");
    expect(stdout.split("\n")[0]).toMatch(/^ +anon .*\badmin +.*authenticated/);
    expect(stdout).toMatch(/^users +select +all 3 .*\n +insert +yes .*\n +update +all 3 /m);
  });

  test.each([
    [["--interface", "door"], "--interface is one of"],
    [["--claims", "7"], "--claims takes a JSON object"],
    [["--role", "postgres"], 'Requests cannot become "postgres"'],
    [["users"], "one word too many"],
  ])("%j is refused in words", async (words, refusal) => {
    const { stderr, code } = await policies(...words);
    expect(stderr).toContain(refusal);
    expect(code).toBe(1);
  });
});

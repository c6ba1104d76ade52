import jwt from "jsonwebtoken";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { urlOf, useDatabase } from "../../database.ts";
import { runCommand } from "./run-command.ts";

const OTHER_SECRET = "another secret that is long enough to sign with";

const database = useDatabase({ template: "empty" });
beforeAll(async () => {
  await say(`alter role authenticator in database ${database.name} set pgrst.db_max_rows = '5'`);
  await say(`alter role authenticator in database ${database.name} set pgrst.jwt_secret = '${OTHER_SECRET}'`);
  await say(`alter role authenticator in database ${database.name} set pgrst.db_schema = 'api'`);
});
afterAll(() => say(`alter role authenticator in database ${database.name} reset all`));

async function say(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
  await client.query(statement);
  await client.end();
}

const run = (name: string, settings: NodeJS.ProcessEnv = {}) => runCommand(name, [], database, settings);

test("config shows the settings of the database, and warns of invalid ones", async () => {
  const { stdout, stderr } = await run("config");
  expect(stdout).toMatch(/^PGRST_DB_MAX_ROWS=5 +\(database\)$/m);
  expect(stdout).toMatch(/^JWT_SECRET=\*+ +\(database\)$/m);
  expect(stdout).not.toContain(OTHER_SECRET);
  expect(stderr).toContain("pgrst.db_schema is not a setting; did you mean pgrst.db_schemas?");
});

test.each(["config", "database-url"])("%s accepts no further arguments", async (name) => {
  expect(await runCommand(name, ["more"], database)).toMatchObject({ code: 2, stdout: "" });
});

test("keys are signed with the secret in effect", async () => {
  const { stdout } = await run("keys");
  const [anon] = stdout.match(/^ey\S+$/m)!;
  expect(jwt.verify(anon!, OTHER_SECRET)).toMatchObject({ role: "anon" });
});

test("PGRST_DB_CONFIG=false does not read settings from the database", async () => {
  const { stdout, stderr } = await run("config", { PGRST_DB_CONFIG: "false" });
  expect(stdout).toMatch(/^PGRST_DB_MAX_ROWS= +\(not set\)$/m);
  expect(stderr).toBe("");
});

test("a database that cannot be reached is a warning", async () => {
  const { stdout, stderr } = await run("config", { DATABASE_URL: urlOf("authenticator", "nowhere") });
  expect(stdout).toMatch(/^PGRST_DB_MAX_ROWS= +\(not set\)$/m);
  expect(stderr).toMatch(/warning: the settings in the database could not be read: database "nowhere" does not exist/);
});

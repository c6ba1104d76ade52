import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import jwt from "jsonwebtoken";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cloneDatabase, type TestDatabase, urlOf } from "../database.ts";

const REPOSITORY = join(import.meta.dirname, "../..");
const SECRET = "a secret that is long enough to sign with";
const OTHER_SECRET = "another secret that is long enough to sign with";

let database: TestDatabase;
beforeAll(async () => {
  database = await cloneDatabase("empty");
  await say(`alter role authenticator in database ${database.name} set pgrst.db_max_rows = '5'`);
  await say(`alter role authenticator in database ${database.name} set pgrst.jwt_secret = '${OTHER_SECRET}'`);
  await say(`alter role authenticator in database ${database.name} set pgrst.db_schema = 'api'`);
});
afterAll(async () => {
  await say(`alter role authenticator in database ${database.name} reset all`);
  await database.drop();
});

async function say(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
  await client.query(statement);
  await client.end();
}

function run(name: string, environment: NodeJS.ProcessEnv = {}) {
  const env = { PATH: process.env.PATH, DATABASE_URL: database.url, JWT_SECRET: SECRET, ...environment };
  return promisify(execFile)(process.execPath, [join(REPOSITORY, `commands/${name}.ts`)], { cwd: REPOSITORY, env });
}

test("config shows what the database says, and what is wrong with it", async () => {
  const { stdout, stderr } = await run("config");
  expect(stdout).toMatch(/^PGRST_DB_MAX_ROWS=5 +\(database\)$/m);
  expect(stdout).toMatch(/^JWT_SECRET=\*+ +\(database\)$/m);
  expect(stdout).not.toContain(OTHER_SECRET);
  expect(stderr).toContain("pgrst.db_schema is not a setting; did you mean pgrst.db_schemas?");
});

test("keys are signed by the secret that is in force", async () => {
  const { stdout } = await run("keys");
  const [anon] = stdout.match(/^ey\S+$/m)!;
  expect(jwt.verify(anon!, OTHER_SECRET)).toMatchObject({ role: "anon" });
});

test("with PGRST_DB_CONFIG=false the database is not asked", async () => {
  const { stdout, stderr } = await run("config", { PGRST_DB_CONFIG: "false" });
  expect(stdout).toMatch(/^PGRST_DB_MAX_ROWS= +\(not set\)$/m);
  expect(stderr).toBe("");
});

test("a database that cannot be asked is a warning", async () => {
  const { stdout, stderr } = await run("config", { DATABASE_URL: urlOf("authenticator", "nowhere") });
  expect(stdout).toMatch(/^PGRST_DB_MAX_ROWS= +\(not set\)$/m);
  expect(stderr).toMatch(
    /warning: what the database says of the settings is unknown: database "nowhere" does not exist/,
  );
});

import { join } from "node:path";
import type pg from "pg";
import { beforeAll, expect, test } from "vitest";
import { useDatabase } from "../database.ts";
import { connect } from "../db/callers.ts";
import { useFolder } from "../fixture.ts";
import { createHostileSchema, hostileCalls } from "../hostile-schema.ts";
import { runCommand } from "../service/cli/run-command.ts";

let owner: pg.Client;

const database = useDatabase({ template: "platform" });
const folder = useFolder("hostile-commands-");
beforeAll(async () => {
  owner = await connect(database.ownerUrl);
  await owner.query("insert into auth.users (email, username) values ('ada@example.org', 'ada')");
  await createHostileSchema(owner);
  await owner.end();
});

/** graphile-migrate's first statement, before which it has no search path of its own. */
const FIRST_OF_GRAPHILE_MIGRATE = "type text wrote as postgres: select pg_catalog.set_config($1::text,";

test("commands call nothing of a schema that comes before Postgres's own on the search path", async () => {
  const file = join(folder, "backup.gz");
  const commands = [
    ["migrate", [], 0],
    ["migrate", ["status"], 0],
    ["doctor", [], expect.any(Number)],
    ["backup", [file], 0],
    ["restore", ["--check", file], 0],
    // The database is not empty.
    ["restore", [file], 1],
  ] as const;
  for (const [name, words, expected] of commands) {
    const { stderr, code } = await runCommand(name, words, database, { BASE_SCHEMA: "platform" });
    expect([name, words, code, stderr]).toEqual([name, words, expected, expect.not.stringContaining("hostile:")]);
  }
  owner = await connect(database.ownerUrl);
  const calls = await hostileCalls(owner);
  await owner.end();
  const others = calls.filter(
    (call) => !call.startsWith(FIRST_OF_GRAPHILE_MIGRATE) && !call.includes(".note(text) called"),
  );
  expect(others).toEqual([]);
});

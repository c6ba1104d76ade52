import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../../engine/pg-client/with-client.ts";
import { refuseTwoDatabases } from "../../../engine/postgres/served-postgres.ts";
import { cloneDatabase, type TestDatabase } from "../../database.ts";

let databases: TestDatabase[];
beforeAll(async () => {
  databases = [await cloneDatabase(), await cloneDatabase()];
});
afterAll(async () => {
  for (const database of databases) await database.drop();
});

describe("refuseTwoDatabases", () => {
  test("accepts the same database with two logins", async () => {
    const { url, ownerUrl } = databases[0]!;
    await refuseTwoDatabases({ requestUrl: url, ownerUrl });
  });

  test("names both databases if they differ", async () => {
    const [one, other] = databases as [TestDatabase, TestDatabase];
    const attempt = refuseTwoDatabases({ requestUrl: one.url, ownerUrl: other.ownerUrl });
    await expect(attempt).rejects.toThrow(`two databases of one server, "${one.name}" and "${other.name}"`);
  });

  test("compares the names if the login may not read the system identifier", async () => {
    const [one, other] = databases as [TestDatabase, TestDatabase];
    await withClient(one.ownerUrl, (owner) =>
      owner.query("revoke execute on function pg_control_system() from public"),
    );
    await refuseTwoDatabases({ requestUrl: one.url, ownerUrl: one.ownerUrl });
    const attempt = refuseTwoDatabases({ requestUrl: one.url, ownerUrl: other.ownerUrl });
    await expect(attempt).rejects.toThrow(`two databases of one server, "${one.name}" and "${other.name}"`);
  });
});

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { refuseTwoDatabases } from "../../cluster/served-postgres.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import { cloneDatabase, type TestDatabase } from "../database.ts";

let databases: TestDatabase[];
beforeAll(async () => {
  databases = [await cloneDatabase(), await cloneDatabase()];
});
afterAll(async () => {
  for (const database of databases) await database.drop();
});

const urlsOf = (ofRequests: TestDatabase, ofOwner: TestDatabase, direct = ofOwner) => ({
  requestUrl: ofRequests.url,
  ownerUrl: ofOwner.ownerUrl,
  directUrl: direct.ownerUrl,
});

describe("refuseTwoDatabases", () => {
  test("accepts the same database with two logins", async () => {
    const { url, ownerUrl } = databases[0]!;
    await expect(refuseTwoDatabases({ requestUrl: url, ownerUrl, directUrl: ownerUrl })).resolves.toBeUndefined();
  });

  test("names both databases if they differ", async () => {
    const [one, other] = databases as [TestDatabase, TestDatabase];
    const attempt = refuseTwoDatabases(urlsOf(one, other));
    await expect(attempt).rejects.toThrow(`two databases of one server, "${one.name}" and "${other.name}"`);
  });

  test("names DIRECT_DATABASE_URL if only it differs", async () => {
    const [one, other] = databases as [TestDatabase, TestDatabase];
    await expect(refuseTwoDatabases(urlsOf(one, one, other))).rejects.toThrow(
      `DATABASE_URL and DIRECT_DATABASE_URL name two databases of one server, "${one.name}" and "${other.name}"`,
    );
  });

  test("compares the names if the login may not read the system identifier", async () => {
    const [one, other] = databases as [TestDatabase, TestDatabase];
    await withClient(one.ownerUrl, (owner) =>
      owner.query("revoke execute on function pg_control_system() from public"),
    );
    await refuseTwoDatabases(urlsOf(one, one));
    const attempt = refuseTwoDatabases(urlsOf(one, other));
    await expect(attempt).rejects.toThrow(`two databases of one server, "${one.name}" and "${other.name}"`);
  });
});

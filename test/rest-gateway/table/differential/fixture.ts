import { readFile } from "node:fs/promises";
import pg from "pg";
import { cloneDatabase, type TestDatabase } from "../../../database.ts";
import { serverBinaries } from "../../../server-binaries.ts";

/** A database that holds the fixture of fixture.sql. */
export async function openFixture(): Promise<TestDatabase> {
  const database = await cloneDatabase("empty");
  const owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  const text = await readFile(new URL("fixture.sql", import.meta.url), "utf8");
  // Postgres 14 has no such views.
  const { major } = await serverBinaries();
  await owner.query(major >= 15 ? text : text.replaceAll(" with (security_invoker = true)", ""));
  await owner.end();
  return database;
}

import { readFile } from "node:fs/promises";
import pg from "pg";
import { cloneDatabase, type TestDatabase } from "../../../database.ts";
import { serverBinaries } from "../../../server-binaries.ts";

/** A database that holds the fixture of fixture.sql. */
export async function openFixture(): Promise<TestDatabase> {
  const database = await cloneDatabase("empty");
  const owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  await owner.query(await fixtureSql((await serverBinaries()).major));
  await owner.end();
  return database;
}

/** The fixture, for an empty database of that major version. */
export async function fixtureSql(major: number): Promise<string> {
  const text = await readFile(new URL("fixture.sql", import.meta.url), "utf8");
  // Postgres 14 has no such views.
  return major >= 15 ? text : text.replaceAll(" with (security_invoker = true)", "");
}

import { readFile } from "node:fs/promises";
import pg from "pg";
import { cloneDatabase, type TestDatabase } from "../../../database.ts";

/** A database that holds the museum of fixture.sql. */
export async function openMuseum(): Promise<TestDatabase> {
  const database = await cloneDatabase("empty");
  const owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  await owner.query(await readFile(new URL("fixture.sql", import.meta.url), "utf8"));
  await owner.end();
  return database;
}

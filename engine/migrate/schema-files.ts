import { readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { dumpSchema } from "../schema-dump.ts";
import { withClient } from "../with-client.ts";
import { applyCommitted } from "./apply-committed.ts";
import { committedMigrations, shownFile } from "./committed.ts";
import type { History } from "./histories.ts";
import { withScratchDatabase } from "./scratch-database.ts";

type Databases = { readonly shadowUrl: string; readonly rootUrl: string };

/** Where what the migrations make is written as text: beside those of a release, and all of it beside the project's. */
export function schemaFile({ name, folder }: History): string {
  return join(name === "project" ? folder : dirname(folder), "schema.sql");
}

/** By file; null where there are no migrations any more. */
export type Schemas = ReadonlyMap<string, string | null>;

/** What all committed migrations make of an empty database. */
export async function makeSchemas({ shadowUrl, rootUrl }: Databases, histories: readonly History[]): Promise<Schemas> {
  const schemas = new Map<string, string | null>();
  await withScratchDatabase(shadowUrl, rootUrl, async () => {
    const applied: History[] = [];
    for (const [file, added] of Map.groupBy(histories, schemaFile)) {
      applied.push(...added);
      const committed = (await Promise.all(added.map(committedMigrations))).flat();
      if (committed.length > 0) await applyCommitted(shadowUrl, rootUrl, applied);
      schemas.set(file, committed.length > 0 ? await withClient(shadowUrl, dumpSchema) : null);
    }
  });
  return schemas;
}

/** Writes the files `schema.sql`. Gives those that have changed. */
export async function writeSchemas(schemas: Schemas): Promise<string[]> {
  const changed: string[] = [];
  for (const [file, schema] of schemas) {
    if (schema === null) await rm(file, { force: true });
    else if (schema !== (await readFile(file, "utf8").catch(() => ""))) {
      await writeFile(file, schema);
      changed.push(shownFile(file));
    }
  }
  return changed;
}

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

/** Applies all committed migrations to an empty database and writes the files `schema.sql`. Gives those that have changed. */
export async function renewSchemaFiles(
  { shadowUrl, rootUrl }: Databases,
  histories: readonly History[],
): Promise<string[]> {
  const stages = Map.groupBy(histories, schemaFile);
  const changed: string[] = [];
  await withScratchDatabase(shadowUrl, rootUrl, async () => {
    const applied: History[] = [];
    for (const [file, added] of stages) {
      applied.push(...added);
      if ((await Promise.all(added.map(committedMigrations))).flat().length === 0) {
        await rm(file, { force: true });
        continue;
      }
      await applyCommitted(shadowUrl, rootUrl, applied);
      const schema = await withClient(shadowUrl, dumpSchema);
      if (schema === (await readFile(file, "utf8").catch(() => ""))) continue;
      await writeFile(file, schema);
      changed.push(shownFile(file));
    }
  });
  return changed;
}

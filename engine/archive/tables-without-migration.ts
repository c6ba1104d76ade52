import { readFile } from "node:fs/promises";
import type pg from "pg";
import type { History } from "../migrate/histories.ts";
import { schemaFile } from "../migrate/schema-files.ts";
import { migrationState } from "../migrate/state.ts";
import { contentTables } from "./content-tables.ts";

/** Tables that no committed migration creates, whose rows could not be restored. */
export async function tablesWithoutMigration(
  client: pg.ClientBase,
  histories: readonly History[],
): Promise<readonly string[]> {
  // The schema files describe the tables only if exactly the committed migrations are applied.
  if ((await migrationState(client, histories)).kind !== "current") return [];
  const files = [...new Set(histories.map(schemaFile))];
  const schemas = await Promise.all(files.map((file) => readFile(file, "utf8").catch(() => "")));
  const migrated = new Set(
    schemas.flatMap((schema) => [...schema.matchAll(/^create (?:unlogged )?table (.+?) \(/gm)].map(nameIn)),
  );
  return (await contentTables(client)).map(({ table }) => unquote(table)).filter((name) => !migrated.has(name));
}

function nameIn([, name = ""]: readonly string[]): string {
  return unquote(name);
}

/** The schema file quotes all names, Postgres only those that need it. */
function unquote(name: string): string {
  return name.replaceAll('"', "");
}

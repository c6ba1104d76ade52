import { readFile } from "node:fs/promises";
import type pg from "pg";
import type { History } from "../migrate/histories.ts";
import { schemaFile } from "../migrate/schema-files.ts";
import { migrationState } from "../migrate/state.ts";
import { contentTables } from "./tables.ts";

/** Tables that no migration makes: a restore would have no place for their rows. */
export async function homelessTables(client: pg.ClientBase, histories: readonly History[]): Promise<readonly string[]> {
  // A database that is behind or ahead has other tables than the files.
  if ((await migrationState(client, histories)).kind !== "current") return [];
  const files = [...new Set(histories.map(schemaFile))];
  const schemas = await Promise.all(files.map((file) => readFile(file, "utf8").catch(() => "")));
  const made = new Set(
    schemas.flatMap((schema) => [...schema.matchAll(/^create (?:unlogged )?table (.+?) \(/gm)].map(nameIn)),
  );
  return (await contentTables(client)).map(({ table }) => plain(table)).filter((name) => !made.has(name));
}

function nameIn([, name = ""]: readonly string[]): string {
  return plain(name);
}

/** Names are quoted in the one text, and only where they must be in the other. */
function plain(name: string): string {
  return name.replaceAll('"', "");
}

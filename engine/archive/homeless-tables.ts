import { readFile } from "node:fs/promises";
import type pg from "pg";
import { migrationState, SCHEMA_FILE } from "../migrate/history.ts";
import { contentTables } from "./tables.ts";

/** Tables that no migration makes: a restore would have no place for their rows. */
export async function homelessTables(client: pg.ClientBase): Promise<readonly string[]> {
  // Whoever is behind or ahead has other tables than the file.
  if ((await migrationState(client)).kind !== "current") return [];
  const made = new Set(
    [...(await readFile(SCHEMA_FILE, "utf8")).matchAll(/^create (?:unlogged )?table (.+?) \(/gm)].map(nameIn),
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

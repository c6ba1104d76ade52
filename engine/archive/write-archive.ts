import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { readFile, rename, rm } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type pg from "pg";
import { schemaFileOf } from "../migrate/commit.ts";
import type { MigrationHistory } from "../migrate/committed-migrations.ts";
import { appliedMigrations, readMigrationState } from "../migrate/migration-state.ts";
import { withClient } from "../pg-client/with-client.ts";
import { type ArchiveLine, FORMAT_VERSION } from "./archive-format.ts";
import { contentRelations, contentTables, setPortableFormats } from "./content-tables.ts";

const FETCH_ROWS = 200;

type ArchiveCounts = { readonly tables: number; readonly rows: number };

/** Writes all rows of one snapshot, without blocking other users of the database. The file appears when it is complete. */
export async function writeArchive(ownerUrl: string, file: string): Promise<ArchiveCounts> {
  // A unique, newly created file: another backup may write to the same target, and an existing file may be readable by others.
  const draft = `${file}.${randomUUID()}.part`;
  let written: ArchiveCounts = { tables: 0, rows: 0 };
  try {
    await withClient(ownerUrl, async (client) => {
      const lines = archiveLines(client, (counts) => {
        written = counts;
      });
      // The backup contains password hashes and private rows.
      const target = createWriteStream(draft, { flags: "wx", mode: 0o600, flush: true });
      await pipeline(Readable.from(lines), createGzip(), target);
    });
    await rename(draft, file);
    return written;
  } finally {
    await rm(draft, { force: true });
  }
}

async function* archiveLines(client: pg.ClientBase, onEnd: (written: ArchiveCounts) => void): AsyncGenerator<string> {
  const line = (value: ArchiveLine) => `${JSON.stringify(value)}\n`;
  await setPortableFormats(client);
  await client.query("begin isolation level repeatable read, read only");
  const { rows: servers } = await client.query<{ version: string }>(
    "select current_setting('server_version') as version",
  );
  const migrations = await appliedMigrations(client);
  yield line({
    contentService: FORMAT_VERSION,
    postgres: servers[0]!.version,
    madeAt: new Date().toISOString(),
    migrations: migrations.map(({ history, name, hash }) => ({ ...(history && { history }), name, hash })),
  });

  const tables = await contentTables(client);
  let rows = 0;
  for (const { table, columns } of tables) {
    yield line({ table, columns });
    await client.query(`declare archived no scroll cursor for select t::text as row from only ${table} as t`);
    for (;;) {
      const { rows: fetched } = await client.query<{ row: string }>(`fetch ${FETCH_ROWS} from archived`);
      for (const { row } of fetched) yield line(row);
      rows += fetched.length;
      if (fetched.length < FETCH_ROWS) break;
    }
    await client.query("close archived");
  }
  // Sequences are not part of the snapshot; read last, they are not behind any row.
  for (const sequence of await contentRelations(client, "S")) {
    const { rows: states } = await client.query<{ last: string; called: boolean }>(
      `select last_value::text as last, is_called as called from ${sequence}`,
    );
    yield line({ sequence, last: states[0]!.last, isCalled: states[0]!.called });
  }
  await client.query("commit");
  yield line({ rows });
  onEnd({ tables: tables.length, rows });
}

/** Tables that no committed migration creates, whose rows could not be restored. */
export async function tablesWithoutMigration(
  client: pg.ClientBase,
  histories: readonly MigrationHistory[],
): Promise<readonly string[]> {
  // The schema files describe the tables only if exactly the committed migrations are applied.
  if ((await readMigrationState(client, histories)).kind !== "current") return [];
  const files = [...new Set(histories.map(schemaFileOf))];
  const schemas = await Promise.all(files.map((file) => readFile(file, "utf8").catch(() => "")));
  const migrated = new Set(
    schemas.flatMap((schema) => [...schema.matchAll(/^create (?:unlogged )?table (.+?) \(/gm)].map(tableNameOf)),
  );
  return (await contentTables(client)).map(({ table }) => unquote(table)).filter((name) => !migrated.has(name));
}

function tableNameOf([, name = ""]: readonly string[]): string {
  return unquote(name);
}

/** The schema file quotes all names, Postgres only those that need it. */
function unquote(name: string): string {
  return name.replaceAll('"', "");
}

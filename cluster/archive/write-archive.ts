import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type pg from "pg";
import type { FileStore } from "#files";
import { appliedMigrations } from "#migrate";
import { withClient } from "#postgres/client";
import { deleteStaleDrafts, draftNameOf, syncFolder } from "../embedded/index.ts";
import { type ArchiveLine, FORMAT_VERSION } from "./content/archive-format.ts";
import { fileLines } from "./content/archived-files.ts";
import { allTables, type ContentTable, sequenceNames, setPortableFormats } from "./content/content-tables.ts";
import { tableRows } from "./content/read-rows.ts";
import { readSchema } from "./schema/read-schema.ts";

const LARGE_OBJECT_BYTES = 100_000;
const CHUNK_CHARACTERS = 64 * 1024;

type ArchiveCounts = { readonly tables: number; readonly rows: number; readonly files: number };

type WriteOptions = {
  readonly signal?: AbortSignal;
  /** The file store whose contents become part of the backup. */
  readonly store?: FileStore | undefined;
};

/**
 * Writes the definition of a database and all its rows, of one snapshot, without blocking sessions that read or write rows.
 * The file appears when it is complete. Throws if the database has an object that restoring could not create.
 */
export async function writeArchive(
  ownerUrl: string,
  file: string,
  { signal, store }: WriteOptions = {},
): Promise<ArchiveCounts> {
  await deleteStaleDrafts(dirname(file));
  // A unique, newly created file: another backup may write to the same target, and an existing file may be readable by others.
  const draft = await draftNameOf(file);
  let written: ArchiveCounts = { tables: 0, rows: 0, files: 0 };
  try {
    await withClient(ownerUrl, async (client) => {
      const lines = toText(
        archiveLines(client, {
          store,
          onEnd: (counts) => {
            written = counts;
          },
        }),
      );
      // The backup contains password hashes and private rows.
      const target = createWriteStream(draft, { flags: "wx", mode: 0o600, flush: true });
      await pipeline(Readable.from(lines, { highWaterMark: 2 }), createGzip(), target, { signal });
    });
    await rename(draft, file);
    await syncFolder(dirname(file));
    return written;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Passes many lines at once: a thread compresses each chunk, which takes longer than writing a line. */
async function* toText(lines: AsyncIterable<ArchiveLine>): AsyncGenerator<string> {
  let chunk = "";
  for await (const line of lines) {
    chunk += `${JSON.stringify(line)}\n`;
    if (chunk.length < CHUNK_CHARACTERS) continue;
    yield chunk;
    chunk = "";
  }
  yield chunk;
}

type LineOptions = Pick<WriteOptions, "store"> & {
  /** Selects the tables whose rows are wanted, with conditions; large objects are then left out. Runs in the snapshot. */
  readonly selectRows?: SelectContent | undefined;
  readonly onEnd?: (written: ArchiveCounts) => void;
};

export type SelectContent = (
  client: pg.ClientBase,
  tables: readonly ContentTable[],
) => readonly ContentTable[] | Promise<readonly ContentTable[]>;

/** Streams the lines of a backup, from one snapshot. */
export async function* archiveLines(
  client: pg.ClientBase,
  { store, selectRows, onEnd = () => {} }: LineOptions = {},
): AsyncGenerator<ArchiveLine> {
  await setPortableFormats(client);
  await client.query("begin isolation level repeatable read, read only");
  const migrations = await appliedMigrations(client);
  const tables = await allTables(client);
  if (tables.length > 0) await client.query(`lock table ${tables.map(({ table }) => table)} in access share mode`);
  const schema = await readSchema(client);
  yield {
    contentService: FORMAT_VERSION,
    postgres: await serverVersion(client),
    madeAt: new Date().toISOString(),
    migrations: migrations.map(({ history, name, hash }) => ({ history, name, hash })),
  };
  yield* [...schema.roles, ...schema.memberships, ...schema.beforeRows];
  let rows = 0;
  for (const table of selectRows ? await selectRows(client, tables) : tables) {
    yield { table: table.table, columns: table.columns };
    for await (const row of tableRows(client, table)) {
      rows++;
      yield row;
    }
  }
  for await (const line of selectRows ? [] : largeObjectLines(client)) {
    if (typeof line === "string") rows++;
    yield line;
  }
  yield* schema.afterRows;
  yield* await sequenceLines(client);
  let files = 0;
  for await (const line of store ? fileLines(client, store) : []) {
    if (typeof line !== "string") files++;
    yield line;
  }
  await client.query("commit");
  yield { rows };
  onEnd({ tables: tables.length, rows, files });
}

async function serverVersion(client: pg.ClientBase): Promise<string> {
  const { rows } = await client.query<{ version: string }>("select current_setting('server_version') as version");
  return rows[0]!.version;
}

async function* largeObjectLines(client: pg.ClientBase): AsyncGenerator<ArchiveLine> {
  const { rows: objects } = await client.query<{ oid: string }>(
    "select oid::text from pg_largeobject_metadata order by oid",
  );
  for (const { oid } of objects) {
    yield { largeObject: oid };
    for (let offset = 0; ; offset += LARGE_OBJECT_BYTES) {
      const { rows } = await client.query<{ content: string; length: number }>(
        "select translate(encode(content, 'base64'), e'\\n', '') as content, length(content) from lo_get($1, $2, $3) as content",
        [oid, offset, LARGE_OBJECT_BYTES],
      );
      const { content, length } = rows[0]!;
      if (length > 0) yield content;
      if (length < LARGE_OBJECT_BYTES) break;
    }
  }
}

/** Sequences are not part of the snapshot; they are read last, so that none is behind a row. */
async function sequenceLines(client: pg.ClientBase): Promise<ArchiveLine[]> {
  const lines: ArchiveLine[] = [];
  for (const sequence of await sequenceNames(client)) {
    const { rows } = await client.query<{ last: string; called: boolean }>(
      `select last_value::text as last, is_called as called from ${sequence}`,
    );
    lines.push({ sequence, last: rows[0]!.last, isCalled: rows[0]!.called });
  }
  return lines;
}

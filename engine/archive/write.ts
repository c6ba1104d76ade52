import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type pg from "pg";
import { appliedMigrations } from "../migrate/record.ts";
import { withClient } from "../with-client.ts";
import { FORMAT, type Line } from "./format.ts";
import { contentRelations, contentTables, speakPlainly } from "./tables.ts";

const ROWS_AT_ONCE = 200;

export type Written = { readonly tables: number; readonly rows: number };

/** All rows as they are at one moment, while everybody works on. The file appears when it is whole. */
export async function writeArchive(ownerUrl: string, file: string): Promise<Written> {
  // Not another one's, who may be writing the same file at the same time, or be able to read what was there before.
  const draft = `${file}.${randomUUID()}.part`;
  let written: Written = { tables: 0, rows: 0 };
  try {
    await withClient(ownerUrl, async (client) => {
      const lines = linesOf(client, (counts) => {
        written = counts;
      });
      // It holds what passwords were made into, and what only their owners may read.
      const target = createWriteStream(draft, { flags: "wx", mode: 0o600, flush: true });
      await pipeline(Readable.from(lines), createGzip(), target);
    });
    await rename(draft, file);
    return written;
  } finally {
    await rm(draft, { force: true });
  }
}

async function* linesOf(client: pg.ClientBase, tell: (written: Written) => void): AsyncGenerator<string> {
  const line = (value: Line) => `${JSON.stringify(value)}\n`;
  await speakPlainly(client);
  await client.query("begin isolation level repeatable read, read only");
  const { rows: servers } = await client.query<{ version: string }>(
    "select current_setting('server_version') as version",
  );
  const migrations = await appliedMigrations(client);
  yield line({
    contentService: FORMAT,
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
      const { rows: found } = await client.query<{ row: string }>(`fetch ${ROWS_AT_ONCE} from archived`);
      for (const { row } of found) yield line(row);
      rows += found.length;
      if (found.length < ROWS_AT_ONCE) break;
    }
    await client.query("close archived");
  }
  // They know no moment; asked last, they are ahead of every row.
  for (const sequence of await contentRelations(client, "S")) {
    const { rows: states } = await client.query<{ last: string; called: boolean }>(
      `select last_value::text as last, is_called as called from ${sequence}`,
    );
    yield line({ sequence, last: states[0]!.last, isCalled: states[0]!.called });
  }
  await client.query("commit");
  yield line({ rows });
  tell({ tables: tables.length, rows });
}

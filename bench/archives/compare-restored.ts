import { execFile } from "node:child_process";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type pg from "pg";
import { checkArchive, writeArchive } from "#cluster/archive";
import { withClient } from "#postgres/client";
import { type RandomSchema, type WrittenTable, writeSchema } from "./random-schema.ts";

export type EmptyDatabase = { readonly name: string; readonly ownerUrl: string; drop(): Promise<void> };

type ComparisonOptions = {
  readonly createDatabase: () => Promise<EmptyDatabase>;
  readonly rootUrl: string;
  /** The folder for backup files. */
  readonly folder: string;
  /** The folder of a pg_dump that can read the server; null if there is none. */
  readonly pgDump: string | null;
};

/**
 * Creates a schema in a database, restores its backup into another one, and throws if they differ: in our own check, in the rows read
 * by column names, or in the output of pg_dump.
 */
export async function compareRestored(schema: RandomSchema, options: ComparisonOptions): Promise<void> {
  const { createDatabase, rootUrl, folder, pgDump } = options;
  const { statements, tables } = writeSchema(schema);
  await using stack = new AsyncDisposableStack();
  const source = stack.adopt(await createDatabase(), (database) => database.drop());
  const target = stack.adopt(await createDatabase(), (database) => database.drop());
  const file = join(folder, `${source.name}.gz`);
  stack.defer(() => rm(file, { force: true }));
  await withClient(source.ownerUrl, async (client) => {
    for (const statement of statements) await client.query(statement);
  });
  await writeArchive(source.ownerUrl, file);
  const { warnings } = await checkArchive(file, { url: target.ownerUrl, shadowUrl: "", rootUrl, histories: [] });
  requireEqual([], warnings);
  const rowsOf = (url: string) => withClient(url, (client) => readRows(client, tables));
  requireEqual(await rowsOf(source.ownerUrl), await rowsOf(target.ownerUrl));
  if (pgDump) requireEqual(await pgDumpLines(pgDump, source.ownerUrl), await pgDumpLines(pgDump, target.ownerUrl));
}

function requireEqual(original: readonly string[], copy: readonly string[]): void {
  const at = original.findIndex((line, index) => line !== copy[index]);
  if (at < 0 && original.length === copy.length) return;
  const place = at < 0 ? original.length : at;
  throw new Error(`The copy differs.\noriginal: ${original[place]}\ncopy:     ${copy[place]}`);
}

/** Reads the rows by column names, unlike a backup. */
async function readRows(client: pg.ClientBase, tables: readonly WrittenTable[]): Promise<string[]> {
  const read: string[] = [];
  for (const { name, columns } of tables) {
    const values = columns.map((column) => `${column}::pg_catalog.text`);
    const query = { text: `select ${values.join(", ")} from only ${name} order by "id of row"`, rowMode: "array" };
    const { rows } = await client.query(query);
    read.push(name, ...rows.map((row) => JSON.stringify(row)));
  }
  return read;
}

const INSERT = /^INSERT INTO [\s\S]*?\);$/gm;

/**
 * Returns the sorted lines of `pg_dump` for a database, because grants and rows have no particular order. A table that
 * inherits has the columns of its parent first after a restore, so an insert is compared by its words.
 */
export async function pgDumpLines(folder: string, url: string): Promise<string[]> {
  const words = ["--inserts", "--column-inserts", "--rows-per-insert=1", url];
  const { stdout } = await promisify(execFile)(join(folder, "pg_dump"), words, { maxBuffer: 1e8 });
  // A table that inherits may have another order of columns, and values may have several lines.
  const others = stdout.replaceAll(INSERT, "");
  const inserts = (stdout.match(INSERT) ?? []).map((statement) =>
    statement
      .split(/[\s(),]+/)
      .sort()
      .join(" "),
  );
  const lines = others.split("\n").filter((line) => !/^\\(un)?restrict /.test(line));
  return [...inserts, ...lines.map((line) => line.replace(/,$/, ""))].sort();
}

import pg from "pg";
import { quotedName } from "#postgres/client";
import { type ArchiveTable, inspectArchive, readArchive } from "../content/archive-format.ts";
import { setPortableFormats } from "../content/content-tables.ts";
import { tableRows } from "../content/read-rows.ts";
import { type ChangedParts, isInParts } from "./changed-parts.ts";

/** A string is a row of the preceding table; a partitioned table has several. */
export type TableSourceLine = ArchiveTable | string;

/** The source of the rows that tables had at an earlier time. */
export type TableSource = {
  /** The time for messages. */
  readonly madeAt: string;
  /** Null if it is a file. */
  readonly databaseUrl: string | null;
  /** Yields nothing if there was no such table. The name is quoted, with its schema. Only a database can skip parts. */
  readTable(table: string, parts: ChangedParts | null): AsyncIterable<TableSourceLine>;
};

/** Opens the rows in a backup file. Reads all of it first, so that damage is found before anything is compared. */
export async function openArchiveSource(file: string): Promise<TableSource> {
  const { header } = await inspectArchive(file);
  return { madeAt: header.madeAt, databaseUrl: null, readTable: (table) => readArchivedTable(file, table) };
}

/** Opens the rows in a database that was restored to a time. */
export function openDatabaseSource(url: string, madeAt: string): TableSource {
  return { madeAt, databaseUrl: url, readTable: (table, parts) => readDatabaseTable(url, table, parts) };
}

const IDENTIFIER = '(?:"(?:[^"]|"")*"|[^\\s".]+)';
const NAME = `(${IDENTIFIER})\\.(${IDENTIFIER})`;
const ATTACHED = new RegExp(`^alter table only ${NAME} attach partition ${NAME} (?:for values|default)`, "i");

async function* readArchivedTable(file: string, table: string): AsyncGenerator<TableSourceLine> {
  const parents = new Map<string, string>();
  const isWanted = (name: string | undefined): boolean =>
    name !== undefined && (name === table || isWanted(parents.get(name)));
  let isReading = false;
  for await (const line of readArchive(file)) {
    if (typeof line === "string") {
      if (isReading) yield line;
    } else if ("statement" in line) {
      isReading = false;
      const [, ...names] = ATTACHED.exec(line.statement) ?? [];
      const [parentSchema, parent, schema, name] = names.map(unquote);
      if (name !== undefined) parents.set(quotedName(schema!, name), quotedName(parentSchema!, parent!));
    } else if ("table" in line) {
      isReading = isWanted(line.table);
      if (isReading) yield line;
    } else {
      isReading = false;
    }
  }
}

function unquote(identifier: string): string {
  return identifier.startsWith('"') ? identifier.slice(1, -1).replaceAll('""', '"') : identifier;
}

const LEAVES = `
  select n.nspname as schema, c.relname as name, array(
      select attname::text from pg_catalog.pg_attribute
       where attrelid = c.oid and attnum > 0 and not attisdropped order by attnum) as columns
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
   where c.relkind = 'r' and c.oid in (
     select pg_catalog.to_regclass($1) union all select relid from pg_catalog.pg_partition_tree(pg_catalog.to_regclass($1)) where isleaf
   ) order by 1, 2`;

async function* readDatabaseTable(
  url: string,
  table: string,
  parts: ChangedParts | null,
): AsyncGenerator<TableSourceLine> {
  const client = new pg.Client(url).on("error", () => {});
  await client.connect();
  try {
    await setPortableFormats(client);
    await client.query("begin isolation level repeatable read, read only");
    const { rows } = await client.query<{ schema: string; name: string; columns: string[] }>(LEAVES, [table]);
    for (const { schema, name, columns } of rows) {
      const leaf = { table: quotedName(schema, name), columns };
      yield leaf;
      yield* tableRows(client, { ...leaf, condition: `where ${isInParts("t", parts)}` });
    }
  } finally {
    await client.end();
  }
}

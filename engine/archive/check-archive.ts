import type { MigrateSettings } from "../migrate/committed-migrations.ts";
import { withClient } from "../pg-client/with-client.ts";
import { type ArchiveLine, type ArchiveTable, ROWS_FORMAT_VERSION, readArchive } from "./archive-format.ts";
import { type RestoreResult, restoreAsArchived } from "./restore-archive.ts";
import { archiveLines } from "./write-archive.ts";

/**
 * Restores a backup into the empty database, and compares a backup of that with it, line by line. Throws if they differ. Of a
 * server of another major version, which writes definitions in other words, and of the first format, only what was restored
 * without an error is known: rows are compared in the former case.
 */
export async function checkArchive(file: string, settings: Required<MigrateSettings>): Promise<RestoreResult> {
  const result = await restoreAsArchived(file, settings);
  if (result.header.contentService === ROWS_FORMAT_VERSION) return result;
  await withClient(settings.url, async (client) => {
    const restored = archiveLines(client);
    const { value: header } = await restored.next();
    const isSameMajor = majorOf(header) === majorOf(result.header);
    const isCompared = (line: ArchiveLine) => isContent(line) || (isSameMajor && isDefinition(line));
    await compareLines(filterLines(readArchive(file), isCompared), filterLines(restored, isCompared));
  });
  return result;
}

function majorOf(header: ArchiveLine | undefined): number {
  return Number.parseInt(typeof header === "object" && "postgres" in header ? header.postgres : "", 10);
}

function isContent(line: ArchiveLine): boolean {
  return typeof line === "string" || "table" in line || "sequence" in line || "largeObject" in line || "rows" in line;
}

/** Roles exist on the server, and privileges on the database itself, independently of a backup. */
function isDefinition(line: ArchiveLine): boolean {
  return typeof line === "object" && "statement" in line && line.object !== "privileges of database";
}

async function* filterLines(
  lines: AsyncIterable<ArchiveLine>,
  isWanted: (line: ArchiveLine) => boolean,
): AsyncGenerator<ArchiveLine> {
  for await (const line of lines) if (isWanted(line)) yield line;
}

async function compareLines(
  archived: AsyncGenerator<ArchiveLine>,
  restored: AsyncGenerator<ArchiveLine>,
): Promise<void> {
  let table: ArchiveTable | null = null;
  // A table that inherits has the columns that were added to its parent before its own.
  let hasOtherOrder = false;
  for (;;) {
    const [{ value: expected }, { value: found }] = [await archived.next(), await restored.next()];
    if (expected === undefined && found === undefined) return;
    if (isTable(expected)) {
      table = expected;
      hasOtherOrder = isTable(found) && isReordered(expected, found);
      if (hasOtherOrder) continue;
    }
    if (hasOtherOrder && typeof expected === "string" && typeof found === "string") continue;
    if (comparable(expected) === comparable(found)) continue;
    const [one, other] = [JSON.stringify(expected), JSON.stringify(found)];
    const place =
      typeof expected === "string" ? `A row of ${table?.table ?? "a large object"}` : "The restored database";
    throw new Error(
      `${place} differs from the backup.\nin the backup: ${excerpt(one)}\nrestored:      ${excerpt(other)}`,
    );
  }
}

/**
 * What Postgres adds to an expression when it writes again what it has read from its own words: casts, parentheses, and the
 * names of the output columns of all branches of a `union`.
 */
const ADDED = [
  / AS ("(?:[^"]|"")+"|\w+)/g,
  /::("[^"]*"|\w+)(\.("[^"]*"|\w+))?( varying| precision| with(out)? time zone)?(\(\d+(,\d+)?\))?(\[\])*/g,
  /[\s()]/g,
];

function comparable(line: ArchiveLine | undefined): string | undefined {
  if (typeof line !== "object" || !("statement" in line)) return JSON.stringify(line);
  return JSON.stringify({
    ...line,
    statement: ADDED.reduce((text, added) => text.replaceAll(added, ""), line.statement),
  });
}

function isTable(line: ArchiveLine | undefined): line is ArchiveTable {
  return typeof line === "object" && "table" in line;
}

function isReordered(one: ArchiveTable, other: ArchiveTable): boolean {
  return (
    one.table === other.table &&
    String(one.columns) !== String(other.columns) &&
    String([...one.columns].sort()) === String([...other.columns].sort())
  );
}

const EXCERPT_CHARACTERS = 2_000;

function excerpt(line: string | undefined): string {
  return line === undefined ? "nothing" : line.slice(0, EXCERPT_CHARACTERS);
}

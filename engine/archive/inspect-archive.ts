import { type ArchiveHeader, type ArchiveTable, FORMAT_VERSION, readArchive } from "./archive-format.ts";

export type ArchiveSummary = {
  readonly header: ArchiveHeader;
  readonly tables: readonly ArchiveTable[];
  readonly rows: number;
};

/** Reads the whole file, so that damage is found before anything is changed. */
export async function inspectArchive(file: string): Promise<ArchiveSummary> {
  let header: ArchiveHeader | null = null;
  let rows: number | null = null;
  let found = 0;
  const tables: ArchiveTable[] = [];
  try {
    for await (const line of readArchive(file)) {
      if (typeof line === "string") found++;
      else if ("contentService" in line) header = line;
      else if ("table" in line) tables.push(line);
      else if ("rows" in line) rows = line.rows;
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") throw new Error(`File not found: ${file}.`, { cause: error });
    throw new Error(`${file} is not a backup of this service, or is damaged: ${message}`, { cause: error });
  }
  if (header?.contentService !== FORMAT_VERSION)
    throw new Error(`${file} is not a backup of this service, or was made by a later release.`);
  if (rows !== found) throw new Error(`${file} is incomplete: it contains only ${found} rows. Nothing was changed.`);
  return { header, tables, rows };
}

import { FORMAT, type Header, readArchive, type Table } from "./format.ts";

export type Archive = { readonly header: Header; readonly tables: readonly Table[]; readonly rows: number };

/** Reads it to its end, so that what is broken is known before anything is changed. */
export async function inspectArchive(file: string): Promise<Archive> {
  let header: Header | null = null;
  let rows: number | null = null;
  let found = 0;
  const tables: Table[] = [];
  try {
    for await (const line of readArchive(file)) {
      if (typeof line === "string") found++;
      else if ("contentService" in line) header = line;
      else if ("table" in line) tables.push(line);
      else if ("rows" in line) rows = line.rows;
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") throw new Error(`There is no file ${file}.`, { cause: error });
    throw new Error(`${file} is no backup of this service, or is damaged: ${message}`, { cause: error });
  }
  if (header?.contentService !== FORMAT)
    throw new Error(`${file} is no backup of this service, or of a later release.`);
  if (rows !== found) throw new Error(`${file} is not whole: ${found} rows are there. Nothing was changed.`);
  return { header, tables, rows };
}

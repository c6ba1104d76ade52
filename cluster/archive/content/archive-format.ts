import { createReadStream } from "node:fs";
import { createGunzip } from "node:zlib";

/** The format with the definition of the database. */
export const FORMAT_VERSION = 2;
/** The format with rows only; the migrations that created their tables have been rewritten since. */
const ROWS_FORMAT_VERSION = 1;
/** The last commit of this repository that restores the first format. */
const ROWS_FORMAT_COMMIT = "6bd84e18";

/** The first line of a backup. */
export type ArchiveHeader = {
  readonly contentService: typeof FORMAT_VERSION;
  readonly postgres: string;
  readonly madeAt: string;
  /** The applied migrations, in order. */
  readonly migrations: readonly { readonly history: string; readonly name: string; readonly hash: string }[];
};

export type ArchiveTable = { readonly table: string; readonly columns: readonly string[] };
export type ArchiveSequence = { readonly sequence: string; readonly last: string | null; readonly isCalled: boolean };
/** A role that the database uses, without its password. */
export type ArchivedRole = {
  readonly role: string;
  readonly attributes: string;
  /** Attributes that a role with CREATEROLE may lack the privilege to grant, such as `bypassrls`. */
  readonly privileges: readonly string[];
  readonly statements: readonly string[];
};

export type ArchivedMembership = {
  readonly of: string;
  /** Null stands for the role that restores. */
  readonly member: string | null;
  readonly admin: boolean;
  /** Present since Postgres 16. */
  readonly inherit?: boolean;
  readonly set?: boolean;
};

/** A statement that creates or completes an object, such as `table public.notes`. */
export type ArchivedStatement = { readonly object: string; readonly statement: string };

/** A large object; the following strings are its content, in base64. */
type ArchivedLargeObject = { readonly largeObject: string };

/** The content of objects under this digest; the following strings are its bytes, in base64. They come after everything else. */
type ArchivedFile = { readonly file: string };

/** The last line; a file without it is truncated. */
type ArchiveEnd = { readonly rows: number };

/** A string is a row of the preceding table, in Postgres's text format of a composite value. */
export type ArchiveLine =
  | ArchiveHeader
  | ArchivedRole
  | ArchivedMembership
  | ArchivedStatement
  | ArchiveTable
  | ArchivedLargeObject
  | string
  | ArchiveSequence
  | ArchivedFile
  | ArchiveEnd;

/** Streams the lines of a backup file. */
export async function* readArchive(file: string): AsyncGenerator<ArchiveLine> {
  const source = createReadStream(file);
  const text = createGunzip().setEncoding("utf8");
  source.on("error", (error) => text.destroy(error));
  try {
    for await (const line of linesOf(source.pipe(text))) yield JSON.parse(line) as ArchiveLine;
  } finally {
    source.destroy();
  }
}

/** This is not readline, which also splits at U+2028 and U+2029: JSON does not escape these in strings. */
async function* linesOf(text: AsyncIterable<string>): AsyncGenerator<string> {
  let partial = "";
  for await (const chunk of text) {
    const [end, ...others] = chunk.split("\n");
    const last = others.pop();
    if (last === undefined) partial += chunk;
    else {
      yield partial + end;
      yield* others;
      partial = last;
    }
  }
  if (partial) yield partial;
}

export type ArchiveSummary = {
  readonly header: ArchiveHeader;
  readonly tables: readonly ArchiveTable[];
  readonly rows: number;
  readonly files: number;
};

/** Reads the whole file, so that damage is found before anything is changed. */
export async function inspectArchive(file: string): Promise<ArchiveSummary> {
  let header: ArchiveHeader | null = null;
  let rows: number | null = null;
  let readRows = 0;
  let files = 0;
  const tables: ArchiveTable[] = [];
  try {
    for await (const line of readArchive(file)) {
      if (typeof line === "string") readRows += files > 0 ? 0 : 1;
      else if ("file" in line) files++;
      else if ("contentService" in line) header = line;
      else if ("table" in line) tables.push(line);
      else if ("rows" in line) rows = line.rows;
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") throw new Error(`File not found: ${file}.`, { cause: error });
    throw new Error(`${file} is not a backup of this service, or is damaged: ${message}`, { cause: error });
  }
  const format: number | undefined = header?.contentService;
  if (format === ROWS_FORMAT_VERSION) {
    throw new Error(
      `${file} was made by a version before 22 November 2026, and has rows only. Nothing was changed. Restore it with commit ` +
        `${ROWS_FORMAT_COMMIT} of the repository (git checkout ${ROWS_FORMAT_COMMIT}, npm ci, npm run restore), then start this version on ` +
        "that database.",
    );
  }
  if (!header || format !== FORMAT_VERSION)
    throw new Error(`${file} is not a backup of this service, or was made by a later release.`);
  if (rows !== readRows)
    throw new Error(`${file} is incomplete: it contains only ${readRows} rows. Nothing was changed.`);
  return { header, tables, rows, files };
}

import { lstat, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import type pg from "pg";
import { displayPath, listFiles, type MigrationHistory } from "./committed-migrations.ts";
import type { MigrationSource, SourceLine } from "./migration-error.ts";
import { runsWithoutTransaction, splitStatements } from "./split-statements.ts";

const FILE_NAME = /^(\d+)(?:-[-\w]*)?\.sql$/;
const INCLUDED = /^--![ \t]*(?:End)?Included?\b/;
const INCLUDE = /^--![ \t]*include[ \t]+(\S.*\.sql)[ \t]*$/;

/** A file in `current/`, with the files that it includes. */
export type CurrentFile = MigrationSource & {
  readonly history: MigrationHistory["name"];
  /** `0010-tags.sql`. */
  readonly name: string;
  readonly file: string;
  /** False if the file starts with `--! no-transaction`. */
  readonly transaction: boolean;
};

/** The errors of Postgres if a schema, a relation, a column, a function, or a policy or another object exists. */
const EXISTS: ReadonlySet<unknown> = new Set(["42P06", "42P07", "42701", "42723", "42710"]);

/** Returns a hint for an error of a file that creates what its last run has created; null for other errors. */
export function repeatableHintOf(error: unknown): string | null {
  if (!EXISTS.has((error as Partial<pg.DatabaseError>).code)) return null;
  return 'Hint: A file in current/ runs again at each save, so it must be repeatable: write "drop … if exists" before "create", or "create or replace".';
}

type CurrentLine = SourceLine & { readonly text: string };

export async function readCurrentFiles(histories: readonly MigrationHistory[]): Promise<CurrentFile[]> {
  return (await Promise.all(histories.map(currentFiles))).flat();
}

/** The files of the current migration, ordered by number, without files that contain no statement. */
export async function currentFiles(history: MigrationHistory): Promise<CurrentFile[]> {
  const folder = join(history.folder, "current");
  const names = (await listFiles(folder)).filter((name) => name.endsWith(".sql") && !name.startsWith("."));
  const numbers = new Map<number, string>();
  for (const name of names) {
    const number = Number(FILE_NAME.exec(name)?.[1] ?? 0);
    if (number === 0) {
      throw new Error(`${displayPath(join(folder, name))}: name it like 0010-tags.sql, beginning with a number.`);
    }
    const duplicate = numbers.get(number);
    if (duplicate) throw new Error(`${duplicate} and ${name} of ${displayPath(folder)} have the same number.`);
    numbers.set(number, name);
  }
  const ordered = [...numbers].sort(([one], [other]) => one - other).map(([, name]) => name);
  const files = await Promise.all(ordered.map((name) => readCurrentFile(history, name)));
  return files.filter((file) => file !== null).filter(({ sql }) => splitStatements(sql).length > 0);
}

/** Returns null if the file was deleted after the folder was listed. */
async function readCurrentFile(history: MigrationHistory, name: string): Promise<CurrentFile | null> {
  const file = join(history.folder, "current", name);
  const lines = await expandIncludes(history, file, []).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
    const entry = await lstat(file).catch(() => null);
    if (entry?.isSymbolicLink()) throw new Error(`${displayPath(file)} is a link to a file that does not exist.`);
    return null;
  });
  if (lines === null) return null;
  const sql = lines.map(({ text }) => text).join("\n");
  const transaction = !runsWithoutTransaction(sql);
  if (!transaction && splitStatements(sql).length > 1) {
    throw new Error(
      `${displayPath(file)}: a migration with "--! no-transaction" has one statement, because Postgres runs several that are sent ` +
        "together in one transaction. Put each into a file of its own.",
    );
  }
  return { history: history.name, name, file, transaction, sql, origins: lines };
}

/** Replaces include lines with the included files, between the marker lines that graphile-migrate writes. */
async function expandIncludes(
  history: MigrationHistory,
  file: string,
  including: readonly string[],
): Promise<CurrentLine[]> {
  const path = displayPath(file);
  const texts = (await readFile(file, "utf8")).trim().split("\n");
  const expanded = await Promise.all(
    texts.map(async (text, index): Promise<CurrentLine[]> => {
      const origin = { file: path, line: index + 1 };
      if (INCLUDED.test(text)) throw new Error(`${path}:${origin.line}: write "--! include <file>" instead.`);
      const name = INCLUDE.exec(text)?.[1];
      if (name === undefined) return [{ ...origin, text }];
      const included = resolveInclude(history, name, origin);
      if (including.includes(included)) throw new Error(`${path}:${origin.line}: ${name} includes itself.`);
      const lines = await expandIncludes(history, included, [...including, file, included]).catch((error: unknown) => {
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
        throw new Error(`${path}:${origin.line}: there is no file ${displayPath(included)}.`);
      });
      const mark = (word: string): CurrentLine => ({ ...origin, text: `--! ${word} ${name}` });
      return [mark("Included"), ...lines, mark("EndIncluded")];
    }),
  );
  return expanded.flat();
}

function resolveInclude({ folder }: MigrationHistory, name: string, { file, line }: SourceLine): string {
  const functions = join(folder, "functions");
  const included = join(functions, name);
  if (relative(functions, included).startsWith("..")) {
    throw new Error(`${file}:${line}: only files of ${displayPath(functions)} can be included.`);
  }
  return included;
}

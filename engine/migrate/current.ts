import { readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { filesOf, shownFile } from "./committed.ts";
import type { History } from "./histories.ts";
import type { Origin, Source } from "./migration-error.ts";
import { splitStatements } from "./split-statements.ts";

/** A file of `current/`, with the functions that it includes. */
export type CurrentFile = Source & {
  readonly history: History["name"];
  /** `0010-tags.sql`. */
  readonly name: string;
  readonly file: string;
  /** Whether it runs in a transaction; one that does not begins with `--! no-transaction`. */
  readonly transaction: boolean;
};

type Line = Origin & { readonly text: string };

const NAME = /^(\d+)(?:-[-\w]*)?\.sql$/;
const NO_TRANSACTION = /^--![ \t]*no-transaction[ \t]*$/;
const INCLUDE = /^--![ \t]*include[ \t]+(\S.*\.sql)[ \t]*$/;
const INCLUDED = /^--![ \t]*(?:End)?Included?\b/;

/** The migration that is being written, in the order of the files' numbers. Files without a statement are left out. */
export async function currentFiles(history: History): Promise<CurrentFile[]> {
  const folder = join(history.folder, "current");
  const names = (await filesOf(folder)).filter((name) => name.endsWith(".sql") && !name.startsWith("."));
  const numbers = new Map<number, string>();
  for (const name of names) {
    const number = Number(NAME.exec(name)?.[1] ?? 0);
    if (number === 0) {
      throw new Error(`${shownFile(join(folder, name))}: name it like 0010-tags.sql, beginning with a number.`);
    }
    const twin = numbers.get(number);
    if (twin) throw new Error(`${twin} and ${name} of ${shownFile(folder)} have the same number.`);
    numbers.set(number, name);
  }
  const ordered = [...numbers].sort(([one], [other]) => one - other).map(([, name]) => name);
  const files = await Promise.all(ordered.map((name) => readCurrent(history, name)));
  return files.filter(({ sql }) => splitStatements(sql).length > 0);
}

async function readCurrent(history: History, name: string): Promise<CurrentFile> {
  const file = join(history.folder, "current", name);
  const lines = await expand(history, file, []);
  const transaction = !NO_TRANSACTION.test(lines[0]?.text ?? "");
  const sql = lines.map(({ text }) => text).join("\n");
  if (!transaction && splitStatements(sql).length > 1) {
    throw new Error(
      `${shownFile(file)}: a migration with "--! no-transaction" has one statement, because Postgres runs several that are sent ` +
        "together in one transaction. Put each into a file of its own.",
    );
  }
  return { history: history.name, name, file, transaction, sql, origins: lines };
}

/** With the text of files that are included between two lines that name them, as graphile-migrate writes it. */
async function expand(history: History, file: string, including: readonly string[]): Promise<Line[]> {
  const shown = shownFile(file);
  const texts = (await readFile(file, "utf8")).trim().split("\n");
  const expanded = await Promise.all(
    texts.map(async (text, index): Promise<Line[]> => {
      const origin = { file: shown, line: index + 1 };
      if (INCLUDED.test(text)) throw new Error(`${shown}:${origin.line}: write "--! include <file>" instead.`);
      const name = INCLUDE.exec(text)?.[1];
      if (name === undefined) return [{ ...origin, text }];
      const included = functionFile(history, name, origin);
      if (including.includes(included)) throw new Error(`${shown}:${origin.line}: ${name} includes itself.`);
      const lines = await expand(history, included, [...including, file, included]).catch((error: unknown) => {
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
        throw new Error(`${shown}:${origin.line}: there is no file ${shownFile(included)}.`);
      });
      const mark = (word: string): Line => ({ ...origin, text: `--! ${word} ${name}` });
      return [mark("Included"), ...lines, mark("EndIncluded")];
    }),
  );
  return expanded.flat();
}

function functionFile({ folder }: History, name: string, { file, line }: Origin): string {
  const functions = join(folder, "functions");
  const included = join(functions, name);
  if (relative(functions, included).startsWith("..")) {
    throw new Error(`${file}:${line}: only files of ${shownFile(functions)} can be included.`);
  }
  return included;
}

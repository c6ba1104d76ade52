import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import type { History } from "./histories.ts";

/** A file of `committed/`. */
export type Migration = {
  readonly history: History["name"];
  /** `000007-tags.sql`. */
  readonly name: string;
  readonly file: string;
  readonly hash: string;
  /** The hash of the one before. */
  readonly previous: string | null;
  readonly message: string | null;
  readonly body: string;
};

type NewMigration = Pick<Migration, "previous" | "message" | "body">;

/** What graphile-migrate writes above the SQL of a committed migration. */
const HEADER = /^--! ([A-Z]\w*)(?::([^\n]*))?\n/gm;

/** In order. A migration that was changed after it was committed is refused. */
export async function committedMigrations({ name: history, folder }: History): Promise<Migration[]> {
  const committed = join(folder, "committed");
  const names = (await filesOf(committed)).filter((name) => /^\d+.*\.sql$/.test(name)).sort();
  refuseTwins(history, names);
  return Promise.all(
    names.map(async (name) => {
      const file = join(committed, name);
      const { headers, body } = parse(await readFile(file, "utf8"));
      const hash = headers.get("Hash");
      if (!hash) {
        throw new Error(
          `${shownFile(file)} has no "--! Hash" line; committed migrations are made by npm run migrate -- commit`,
        );
      }
      const before = headers.get("Previous") ?? "-";
      const previous = before === "-" ? null : before;
      if (hash !== hashOf(body, previous) && !headers.has("AllowInvalidHash")) {
        throw new Error(
          `${shownFile(file)} was changed after it was committed, and databases that have it would not learn of it. ` +
            "Put it back as it was, line ends too, and write what is to change as a new migration.",
        );
      }
      return { history, name, file, hash, previous, message: headers.get("Message") ?? null, body };
    }),
  );
}

/** The text of the file, as graphile-migrate writes it. */
export function writeMigration({ previous, message, body }: NewMigration): { readonly hash: string; text: string } {
  const hash = hashOf(body, previous);
  const headers = [`Previous: ${previous ?? "-"}`, `Hash: ${hash}`, ...(message ? [`Message: ${message}`] : [])];
  return { hash, text: `${headers.map((header) => `--! ${header}\n`).join("")}\n${body.trim()}\n` };
}

/** As people see it: from the working directory where it is below it. */
export function shownFile(file: string): string {
  const path = relative(process.cwd(), file);
  return path.startsWith("..") ? file : path;
}

/** None where there is no such folder. */
export async function filesOf(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

function parse(text: string): { readonly headers: ReadonlyMap<string, string>; readonly body: string } {
  const [head] = /^(?:--! [A-Z]\w*(?::[^\n]*)?\n)*/.exec(text)!;
  const headers = [...head.matchAll(HEADER)].map(([, name, value]) => [name!, value?.trim() ?? ""] as const);
  return { headers: new Map(headers), body: text.slice(head.length) };
}

/** As graphile-migrate computes it: each depends on the one before. */
function hashOf(body: string, previous: string | null): string {
  const chained = `${previous ?? ""}\n${body.trim()}`;
  return `sha1:${createHash("sha1").update(`${chained.trim()}\n`).digest("hex")}`;
}

/** Made in two branches that were merged; graphile-migrate would name their hashes only. */
function refuseTwins(history: string, names: readonly string[]): void {
  const number = (name: string) => Number.parseInt(name, 10);
  const twin = names.findIndex((name, index) => index > 0 && number(name) === number(names[index - 1]!));
  if (twin < 0) return;
  throw new Error(
    `${names[twin - 1]} and ${names[twin]} of history "${history}" have the same number. Take yours back in your branch ` +
      "(npm run migrate -- uncommit), merge the other, and commit yours again, after it.",
  );
}

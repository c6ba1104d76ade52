import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { extname, join, relative, resolve } from "node:path";

/** `db` beside the program: in a clone its root, in a package `dist`. */
const DB_FOLDER = join(import.meta.dirname, "../../db");
/** A package has what was built of the sources. */
const isClone = extname(import.meta.filename) === ".ts";

/** A file of `committed/`. */
export type CommittedMigration = {
  readonly history: MigrationHistory["name"];
  /** `000007-tags.sql`. */
  readonly name: string;
  readonly file: string;
  readonly hash: string;
  /** The hash of the one before. */
  readonly previous: string | null;
  readonly message: string | null;
  readonly body: string;
};

type NewMigration = Pick<CommittedMigration, "previous" | "message" | "body">;

/** What graphile-migrate writes above the SQL of a committed migration. */
const HEADER = /^--! ([A-Z]\w*)(?::([^\n]*))?\n/gm;

/** In order. A migration that was changed after it was committed is refused. */
export async function committedMigrations({ name: history, folder }: MigrationHistory): Promise<CommittedMigration[]> {
  const committed = join(folder, "committed");
  const names = (await listFiles(committed)).filter((name) => /^\d+.*\.sql$/.test(name)).sort();
  requireUniqueNumbers(history, names);
  return Promise.all(
    names.map(async (name) => {
      const file = join(committed, name);
      const { headers, body } = parseMigration(await readFile(file, "utf8"));
      const hash = headers.get("Hash");
      if (!hash) {
        throw new Error(
          `${displayPath(file)} has no "--! Hash" line; committed migrations are made by npm run migrate -- commit`,
        );
      }
      const before = headers.get("Previous") ?? "-";
      const previous = before === "-" ? null : before;
      if (hash !== computeHash(body, previous) && !headers.has("AllowInvalidHash")) {
        throw new Error(
          `${displayPath(file)} was changed after it was committed, and databases that have it would not learn of it. ` +
            "Put it back as it was, line ends too, and write what is to change as a new migration.",
        );
      }
      return { history, name, file, hash, previous, message: headers.get("Message") ?? null, body };
    }),
  );
}

/** The text of the file, as graphile-migrate writes it. */
export function writeMigration({ previous, message, body }: NewMigration): { readonly hash: string; text: string } {
  const hash = computeHash(body, previous);
  const headers = [`Previous: ${previous ?? "-"}`, `Hash: ${hash}`, ...(message ? [`Message: ${message}`] : [])];
  return { hash, text: `${headers.map((header) => `--! ${header}\n`).join("")}\n${body.trim()}\n` };
}

/** As people see it: from the working directory where it is below it. */
export function displayPath(file: string): string {
  const path = relative(process.cwd(), file);
  return path.startsWith("..") ? file : path;
}

/** None where there is no such folder. */
export async function listFiles(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

function parseMigration(text: string): { readonly headers: ReadonlyMap<string, string>; readonly body: string } {
  const [head] = /^(?:--! [A-Z]\w*(?::[^\n]*)?\n)*/.exec(text)!;
  const headers = [...head.matchAll(HEADER)].map(([, name, value]) => [name!, value?.trim() ?? ""] as const);
  return { headers: new Map(headers), body: text.slice(head.length) };
}

/** As graphile-migrate computes it: each depends on the one before. */
function computeHash(body: string, previous: string | null): string {
  const chained = `${previous ?? ""}\n${body.trim()}`;
  return `sha1:${createHash("sha1").update(`${chained.trim()}\n`).digest("hex")}`;
}

/** Made in two branches that were merged; graphile-migrate would name their hashes only. */
function requireUniqueNumbers(history: string, names: readonly string[]): void {
  const number = (name: string) => Number.parseInt(name, 10);
  const duplicate = names.findIndex((name, index) => index > 0 && number(name) === number(names[index - 1]!));
  if (duplicate < 0) return;
  throw new Error(
    `${names[duplicate - 1]} and ${names[duplicate]} of history "${history}" have the same number. Take yours back in your branch ` +
      "(npm run migrate -- uncommit), merge the other, and commit yours again, after it.",
  );
}

/**
 * A sequence of migrations that is numbered by itself: that of the platform, that of the example application, and that of
 * the project that is built on them. A release adds to the first two, a deployment to the third.
 */
export type MigrationHistory = {
  readonly name: "platform" | "content" | "project";
  /** Has `committed/`, `current/` and `functions/`. */
  readonly folder: string;
};

export type MigrateSettings = {
  /** The database's owner. */
  readonly url: string;
  /** A scratch database of the same server. */
  readonly shadowUrl: string;
  /** A database that always exists, to create and drop the others from. */
  readonly rootUrl: string;
  /** Those of the release where they are left out. */
  readonly histories?: readonly MigrationHistory[];
};

/** Those of this release, in the order in which they are applied. */
export function releaseHistories(): MigrationHistory[] {
  const histories: MigrationHistory[] = [
    { name: "platform", folder: join(DB_FOLDER, "platform") },
    { name: "content", folder: join(DB_FOLDER, "content") },
  ];
  return histories.filter(({ folder }) => existsSync(folder));
}

/** Those of this release, and the project's in the folder of MIGRATIONS_DIR. */
export function allHistories(migrationsDir: string | null): MigrationHistory[] {
  const defaultDir = isClone ? join(DB_FOLDER, "migrations") : "db/migrations";
  return [...releaseHistories(), { name: "project", folder: resolve(migrationsDir ?? defaultDir) }];
}

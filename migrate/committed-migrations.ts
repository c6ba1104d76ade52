import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { extname, join, relative, resolve } from "node:path";
import { commandLine } from "#runtime";
import type { LockLimits } from "./lock-limits.ts";

/** The folder `db` of the clone, or of `dist` in the package. */
export const DB_FOLDER = join(import.meta.dirname, "../db");
/** The package contains built files. */
const isClone = extname(import.meta.filename) === ".ts";

/** A file of `committed/`. */
export type CommittedMigration = {
  readonly history: MigrationHistory["name"];
  /** `000007-tags.sql`. */
  readonly name: string;
  readonly file: string;
  readonly hash: string;
  /** The hash of the previous migration. */
  readonly previous: string | null;
  readonly message: string | null;
  readonly body: string;
};

type NewMigration = Pick<CommittedMigration, "previous" | "message" | "body">;

/** The header lines that graphile-migrate writes above a committed migration. */
const HEADER = /^--! ([A-Z]\w*)(?::([^\n]*))?\n/gm;

/** The committed migrations in order. Throws if one was changed after it was committed. */
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
          `${displayPath(file)} has no "--! Hash" line; committed migrations are made by ${commandLine("migrate", "commit")}`,
        );
      }
      const before = headers.get("Previous") ?? "-";
      const previous = before === "-" ? null : before;
      if (hash !== computeHash(body, previous) && !headers.has("AllowInvalidHash")) {
        throw new Error(
          `${displayPath(file)} was changed after it was committed, and databases that have it would not learn of it. ` +
            "Restore the original file, including line ends, and write the change as a new migration.",
        );
      }
      return { history, name, file, hash, previous, message: headers.get("Message") ?? null, body };
    }),
  );
}

/** The text of the file, in graphile-migrate's format. */
export function writeMigration({ previous, message, body }: NewMigration): { readonly hash: string; text: string } {
  const hash = computeHash(body, previous);
  const headers = [`Previous: ${previous ?? "-"}`, `Hash: ${hash}`, ...(message ? [`Message: ${message}`] : [])];
  return { hash, text: `${headers.map((header) => `--! ${header}\n`).join("")}\n${body.trim()}\n` };
}

/** The path for messages: relative if it is inside the working directory. */
export function displayPath(file: string): string {
  const path = relative(process.cwd(), file);
  return path.startsWith("..") ? file : path;
}

/** Empty if the folder does not exist. */
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

/** Computes the hash as graphile-migrate does; each hash depends on the previous one. */
function computeHash(body: string, previous: string | null): string {
  const chained = `${previous ?? ""}\n${body.trim()}`;
  return `sha1:${createHash("sha1").update(`${chained.trim()}\n`).digest("hex")}`;
}

/** Throws for equal numbers, which two merged branches can cause; graphile-migrate's error would only contain hashes. */
function requireUniqueNumbers(history: string, names: readonly string[]): void {
  const number = (name: string) => Number.parseInt(name, 10);
  const duplicate = names.findIndex((name, index) => index > 0 && number(name) === number(names[index - 1]!));
  if (duplicate < 0) return;
  throw new Error(
    `${names[duplicate - 1]} and ${names[duplicate]} of history "${history}" have the same number. Take yours back in your branch ` +
      `(${commandLine("migrate", "uncommit")}), merge the other, and commit yours again, after it.`,
  );
}

/**
 * A sequence of migrations with its own numbers: of the platform, of the example application, or of the project that is
 * built on them. Releases add to the first two, a deployment to the third.
 */
export type MigrationHistory = {
  readonly name: "platform" | "content" | "project";
  /** The folder with `committed/`, `current/` and `functions/`. */
  readonly folder: string;
};

export type MigrateSettings = {
  /** Connection string of the database owner. */
  readonly url: string;
  /** Connection string of a scratch database on the same server. */
  readonly shadowUrl: string;
  /** Connection string of a database that always exists, for creating and dropping the others. */
  readonly rootUrl: string;
  readonly histories: readonly MigrationHistory[];
  /** The default is no limits. */
  readonly lockLimits?: LockLimits;
};

/** Settings whose histories default to those of the release. */
export type ReleaseMigrateSettings = Omit<MigrateSettings, "histories"> & Partial<Pick<MigrateSettings, "histories">>;

/** The histories of this release, in the order in which they are applied. */
export function releaseHistories(): MigrationHistory[] {
  const histories: MigrationHistory[] = [
    { name: "platform", folder: join(DB_FOLDER, "platform") },
    { name: "content", folder: join(DB_FOLDER, "content") },
  ];
  return histories.filter(({ folder }) => existsSync(folder));
}

/** True if these are all histories of the release, in a clone, where its `schema.sql` can be renewed. */
export function includesRelease(histories: readonly MigrationHistory[]): boolean {
  return isClone && releaseHistories().every(({ name }) => histories.some((history) => history.name === name));
}

/** The release's histories by the value of BASE_SCHEMA. */
const BASE_HISTORIES = {
  none: [],
  platform: ["platform"],
  content: ["platform", "content"],
} as const satisfies Record<string, readonly MigrationHistory["name"][]>;

type HistorySettings = {
  readonly migrationsDir: string | null;
  readonly baseSchema: keyof typeof BASE_HISTORIES | null;
};

/** The histories of this release that BASE_SCHEMA selects, and the project's in MIGRATIONS_DIR. */
export function allHistories({ migrationsDir, baseSchema }: HistorySettings): MigrationHistory[] {
  const base: readonly string[] = BASE_HISTORIES[baseSchema ?? (isClone ? "content" : "platform")];
  const defaultDir = isClone ? join(DB_FOLDER, "migrations") : "db/migrations";
  return [
    ...releaseHistories().filter(({ name }) => base.includes(name)),
    { name: "project", folder: resolve(migrationsDir ?? defaultDir) },
  ];
}

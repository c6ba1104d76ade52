import { existsSync } from "node:fs";
import { extname, join, resolve } from "node:path";

/**
 * A sequence of migrations that is numbered by itself: that of the platform, that of the example application, and that of
 * the project that is built on them. A release adds to the first two, a deployment to the third.
 */
export type History = {
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
  readonly histories?: readonly History[];
};

/** `db` beside the program: in a clone its root, in a package `dist`. */
const DB_FOLDER = join(import.meta.dirname, "../../db");
/** A package has what was built of the sources. */
const isClone = extname(import.meta.filename) === ".ts";

/** Those of this release, in the order in which they are applied. */
export function releasedHistories(): History[] {
  const histories: History[] = [
    { name: "platform", folder: join(DB_FOLDER, "platform") },
    { name: "content", folder: join(DB_FOLDER, "content") },
  ];
  return histories.filter(({ folder }) => existsSync(folder));
}

/** Those of this release, and the project's in the folder of MIGRATIONS_DIR. */
export function allHistories(migrationsDir: string | null): History[] {
  const unset = isClone ? join(DB_FOLDER, "migrations") : "db/migrations";
  return [...releasedHistories(), { name: "project", folder: resolve(migrationsDir ?? unset) }];
}

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type pg from "pg";

export const MIGRATIONS_FOLDER = join(import.meta.dirname, "../../db/migrations");
/** What the committed ones make, as text. */
export const SCHEMA_FILE = join(import.meta.dirname, "../../db/schema.sql");

/** How a database stands to the migrations of this program. */
export type MigrationState =
  /** None of them: a database that was never ours. */
  | { readonly kind: "foreign" }
  | { readonly kind: "current"; readonly applied: number }
  | { readonly kind: "behind"; readonly applied: number; readonly missing: readonly string[] }
  /** All of ours and later ones: a newer release has migrated it. */
  | { readonly kind: "ahead"; readonly unknown: readonly string[] };

type Migration = { readonly name: string; readonly hash: string };

export async function migrationState(client: pg.ClientBase, folder = MIGRATIONS_FOLDER): Promise<MigrationState> {
  const committed = await committedMigrations(folder);
  const applied = await appliedMigrations(client);
  const appliedHashes = new Set(applied.map(({ hash }) => hash));
  const committedHashes = new Set(committed.map(({ hash }) => hash));
  const missing = committed.filter(({ hash }) => !appliedHashes.has(hash));
  const unknown = applied.filter(({ hash }) => !committedHashes.has(hash));
  if (applied.length === unknown.length) return { kind: "foreign" };
  if (missing.length > 0) {
    return { kind: "behind", applied: applied.length, missing: missing.map(({ name }) => name) };
  }
  if (unknown.length > 0) return { kind: "ahead", unknown: unknown.map(({ name }) => name) };
  return { kind: "current", applied: applied.length };
}

export async function committedMigrations(folder = MIGRATIONS_FOLDER): Promise<Migration[]> {
  const names = (await readdir(join(folder, "committed"))).filter((name) => /^\d+.*\.sql$/.test(name)).sort();
  refuseTwins(names);
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(join(folder, "committed", name), "utf8");
      const hash = /^--! Hash: (\S+)$/m.exec(text)?.[1];
      if (!hash)
        throw new Error(`${name} has no "--! Hash" line; committed migrations are made by npm run migrate -- commit`);
      return { name, hash };
    }),
  );
}

/** Made in two branches that were merged; graphile-migrate speaks of their hashes. */
function refuseTwins(names: readonly string[]): void {
  const number = (name: string) => Number.parseInt(name, 10);
  const twin = names.findIndex((name, index) => index > 0 && number(name) === number(names[index - 1]!));
  if (twin < 0) return;
  throw new Error(
    `${names[twin - 1]} and ${names[twin]} have the same number. Take yours back in your branch ` +
      "(npm run migrate -- uncommit), merge the other, and commit yours again, after it.",
  );
}

export async function appliedMigrations(client: pg.ClientBase): Promise<Migration[]> {
  const { rows } = await client.query<{ known: boolean }>(
    "select to_regclass('graphile_migrate.migrations') is not null as known",
  );
  if (!rows[0]?.known) return [];
  try {
    const { rows: applied } = await client.query<Migration>(
      "select filename as name, hash from graphile_migrate.migrations order by filename",
    );
    return applied;
  } catch (error) {
    if ((error as pg.DatabaseError).code !== "42501") throw error;
    throw new Error(
      "The login of DATABASE_URL may not see which migrations are applied. Set OWNER_DATABASE_URL to the same database as its owner.",
    );
  }
}

import { createHash } from "node:crypto";
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

/** What graphile-migrate writes above the SQL of a committed migration. */
const HEADER = /^--! ([A-Z]\w*)(?::([^\n]*))?\n/gm;

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
      const { headers, body } = takenApart(text);
      const hash = headers.get("Hash");
      if (!hash)
        throw new Error(`${name} has no "--! Hash" line; committed migrations are made by npm run migrate -- commit`);
      if (hash !== hashOf(body, headers.get("Previous") ?? "-") && !headers.has("AllowInvalidHash")) {
        throw new Error(
          `${name} was changed after it was committed, and databases that have it would not learn of it. ` +
            "Put it back as it was, line ends too, and write what is to change as a new migration.",
        );
      }
      return { name, hash };
    }),
  );
}

function takenApart(text: string): { readonly headers: ReadonlyMap<string, string>; readonly body: string } {
  const [head] = /^(?:--! [^\n]*\n)*/.exec(text)!;
  const headers = [...head.matchAll(HEADER)].map(([, name, value]) => [name!, value?.trim() ?? ""] as const);
  return { headers: new Map(headers), body: text.slice(head.length) };
}

/** As graphile-migrate reckons it: each depends on the one before. */
function hashOf(body: string, previous: string): string {
  const chained = `${previous === "-" ? "" : previous}\n${body.trim()}`;
  return `sha1:${createHash("sha1").update(`${chained.trim()}\n`).digest("hex")}`;
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
  try {
    // It refuses to look into a schema that is closed to who asks.
    const { rows } = await client.query<{ known: boolean }>(
      "select to_regclass('graphile_migrate.migrations') is not null as known",
    );
    if (!rows[0]?.known) return [];
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

import type pg from "pg";
import { type CommittedMigration, committedMigrations, type MigrationHistory } from "./committed-migrations.ts";
import { createRecordTables } from "./migration-record.ts";

/** The state of a database relative to the migrations of the release and the project. Names are like `content/000007-tags.sql`. */
export type MigrationState =
  /** No migration is applied: not a database of the service. */
  | { readonly kind: "foreign" }
  | { readonly kind: "current"; readonly applied: number }
  | { readonly kind: "behind"; readonly applied: number; readonly missing: readonly string[] }
  /** All known migrations and others: a newer release has migrated it. */
  | { readonly kind: "ahead"; readonly unknown: readonly string[] }
  /** A different migration was applied in place of a known one. */
  | { readonly kind: "diverged"; readonly applied: string; readonly committed: string };

export async function readMigrationState(
  client: pg.ClientBase,
  histories: readonly MigrationHistory[],
): Promise<MigrationState> {
  const all = await Promise.all(histories.map(committedMigrations));
  const applied = await appliedMigrations(client);
  if (applied.length === 0) return { kind: "foreign" };

  const missing: CommittedMigration[] = [];
  const recognized = new Set<AppliedMigration>();
  for (const [index, { name: history }] of histories.entries()) {
    const committed = all[index]!;
    const recorded = applied.filter((migration) => migration.history === history).sort(compareNames);
    for (const [position, migration] of committed.entries()) {
      const other = recorded[position];
      if (!other) missing.push(migration);
      else if (other.hash === migration.hash) recognized.add(other);
      else return { kind: "diverged", applied: nameOf(other), committed: nameOf(migration) };
    }
  }
  if (missing.length > 0) return { kind: "behind", applied: recognized.size, missing: missing.map(nameOf) };
  const unknown = applied.filter((migration) => !recognized.has(migration));
  if (unknown.length > 0) return { kind: "ahead", unknown: unknown.map(nameOf) };
  return { kind: "current", applied: recognized.size };
}

/** Explains what to do about a diverged database. */
export function explainDivergence({
  applied,
  committed,
}: {
  readonly applied: string;
  readonly committed: string;
}): string {
  return (
    `The database has ${applied} where ${committed} is here: it was committed again, or renumbered, after it was applied. ` +
    "Restore the file as the database has it, and write the change as a new migration."
  );
}

function nameOf({ history, name }: Pick<CommittedMigration, "history" | "name"> | AppliedMigration): string {
  return `${history}/${name}`;
}

function compareNames(one: AppliedMigration, other: AppliedMigration): number {
  return one.name < other.name ? -1 : 1;
}

/** A migration that is recorded as applied. */
type AppliedMigration = {
  readonly history: string;
  /** `000007.sql`. */
  readonly name: string;
  readonly hash: string;
  readonly appliedAt: Date;
};

/** Creates the record of migrations if it does not exist, in one transaction. */
export async function createRecord(client: pg.ClientBase): Promise<void> {
  const { histories, migrations } = await findRecordTables(client);
  if (histories) return;
  if (migrations) {
    throw new Error(
      "graphile_migrate.migrations belongs to another application that migrates this database. Nothing was changed. " +
        "Use another database, or serve this one as it is, without migrating it.",
    );
  }
  await createRecordTables(client);
}

/** The applied migrations, in the order in which they were applied. */
export async function appliedMigrations(client: pg.ClientBase): Promise<AppliedMigration[]> {
  try {
    const { histories } = await findRecordTables(client);
    if (!histories) return [];
    const { rows } = await client.query<AppliedMigration>(
      'select history, filename as name, hash, date as "appliedAt" from graphile_migrate.histories order by date, filename',
    );
    return rows;
  } catch (error) {
    if ((error as pg.DatabaseError).code !== "42501") throw error;
    throw new Error(
      "The login of DATABASE_URL may not see which migrations are applied. Set OWNER_DATABASE_URL to the same database as its owner.",
    );
  }
}

/** Fails if the login role has no `usage` on the schema. */
async function findRecordTables(client: pg.ClientBase): Promise<{ histories: boolean; migrations: boolean }> {
  const { rows } = await client.query<{ histories: boolean; migrations: boolean }>(
    `select pg_catalog.to_regclass('graphile_migrate.histories') is not null as histories,
      pg_catalog.to_regclass('graphile_migrate.migrations') is not null as migrations`,
  );
  return rows[0]!;
}

import { createHash } from "node:crypto";
import type pg from "pg";
import { type CommittedMigration, displayPath } from "./committed-migrations.ts";
import { recordMigration } from "./migration-record.ts";
import type { ScriptTransaction } from "./split-transactions.ts";

/** The committed transactions of migrations that have several, until the migrations are recorded as applied. */
const CREATE_TABLE = `
  create table if not exists graphile_migrate.committed_transactions (
    history   text not null,
    filename  text not null,
    committed int not null,
    digest    text not null,
    constraint content_service_committed_transactions_pkey primary key (history, filename)
  )`;

/** A migration of several transactions. */
type SteppedMigration = {
  readonly migration: CommittedMigration;
  /** The text with filled placeholders, which a copy of the database fills differently. */
  readonly sql: string;
  readonly transactions: readonly ScriptTransaction[];
};

function digestOf({ sql, transactions }: SteppedMigration, committed: number): string {
  const text = committed === 0 ? "" : sql.slice(0, transactions[committed - 1]!.endOffset);
  return createHash("sha1").update(text).digest("hex");
}

function keyOf({ history, name }: Pick<CommittedMigration, "history" | "name">): readonly [string, string] {
  return [history, `${name.slice(0, 6)}.sql`];
}

async function hasTable(client: pg.ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ exists: boolean }>(
    "select pg_catalog.to_regclass('graphile_migrate.committed_transactions') is not null as exists",
  );
  return rows[0]!.exists;
}

/** The number of the migration's committed transactions. Throws if their text has changed. */
export async function readProgress(client: pg.ClientBase, stepped: SteppedMigration): Promise<number> {
  if (!(await hasTable(client))) return 0;
  const { rows } = await client.query<{ committed: number; digest: string }>(
    "select committed, digest from graphile_migrate.committed_transactions where (history, filename) = ($1, $2)",
    [...keyOf(stepped.migration)],
  );
  const [progress] = rows;
  if (!progress) return 0;
  const { committed, digest } = progress;
  if (committed <= stepped.transactions.length && digestOf(stepped, committed) === digest) return committed;
  const [history, filename] = keyOf(stepped.migration);
  throw new Error(
    `${displayPath(stepped.migration.file)} failed after ${committed} of its transactions were committed, and their text has changed since. ` +
      "Restore it; or take back what they did, and delete from graphile_migrate.committed_transactions " +
      `where (history, filename) = ('${history}', '${filename}').`,
  );
}

/** Records in the open transaction that it is the last committed one, or that the migration is applied with it. */
export async function recordProgress(
  client: pg.ClientBase,
  stepped: SteppedMigration,
  committed: number,
): Promise<void> {
  const { migration, transactions } = stepped;
  const key = keyOf(migration);
  // The migration may have become another role, which it stays after the commit.
  await client.query("set local session authorization default; set local role none");
  if (committed === transactions.length) {
    await recordMigration(client, migration.history, migration);
    await forgetProgress(client, migration);
    return;
  }
  await client.query(CREATE_TABLE);
  await client.query(
    `insert into graphile_migrate.committed_transactions (history, filename, committed, digest) values ($1, $2, $3, $4)
     on conflict (history, filename) do update set committed = excluded.committed, digest = excluded.digest`,
    [...key, committed, digestOf(stepped, committed)],
  );
}

/** Forgets committed transactions, for example of a migration that becomes files of `current/` again. */
export async function forgetProgress(
  client: pg.ClientBase,
  migration: Pick<CommittedMigration, "history" | "name">,
): Promise<void> {
  if (!(await hasTable(client))) return;
  await client.query("delete from graphile_migrate.committed_transactions where (history, filename) = ($1, $2)", [
    ...keyOf(migration),
  ]);
}

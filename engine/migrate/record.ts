import type pg from "pg";

/** A migration that a database has, as its record says. */
export type AppliedMigration = {
  /** Null in a database of the single history that releases had at first. */
  readonly history: string | null;
  /** `000007.sql`. */
  readonly name: string;
  readonly hash: string;
};

/** The first migration of the single history. */
const SINGLE_HISTORY = "sha1:59e9ed9b1d9c80e11b0952e7224cd99c513936b1";

export const SINGLE_HISTORY_ADVICE =
  "The database was made by an earlier version, which had one history of migrations. Back it up " +
  "(npm run backup), start on a new DATA_DIR or an empty database, and restore the backup there (npm run restore).";

/** The history whose migrations graphile-migrate sees on a connection. */
export const HISTORY_SETTING = "content_service.history";

/**
 * graphile-migrate knows one table of migrations. Here it is a view of the history that the connection names, so that
 * each is applied and recorded by itself.
 */
const RECORD = `
  create schema if not exists graphile_migrate;
  create table graphile_migrate.histories (
    history       text not null default current_setting('${HISTORY_SETTING}'),
    hash          text not null,
    previous_hash text,
    filename      text not null,
    date          timestamptz not null default now(),
    primary key (history, filename),
    unique (history, hash)
  );
  create view graphile_migrate.migrations as
    select hash, previous_hash, filename, date from graphile_migrate.histories
    where history = current_setting('${HISTORY_SETTING}');
  create table if not exists graphile_migrate.current (
    filename text primary key default 'current.sql',
    content  text not null,
    date     timestamptz not null default now()
  )`;

/** Makes the record where there is none, in the same transaction or not at all. */
export async function makeRecord(client: pg.ClientBase): Promise<void> {
  const { histories, migrations } = await recordOf(client);
  if (histories) return;
  if (migrations) {
    if (await hasSingleHistory(client)) throw new Error(SINGLE_HISTORY_ADVICE);
    throw new Error(
      "graphile_migrate.migrations belongs to another application that migrates this database. Nothing was changed. " +
        "Use another database, or serve this one as it is, without migrating it.",
    );
  }
  await client.query(RECORD);
}

/** In the order in which they were applied. */
export async function appliedMigrations(client: pg.ClientBase): Promise<AppliedMigration[]> {
  try {
    const { histories, migrations } = await recordOf(client);
    if (histories) {
      const { rows } = await client.query<AppliedMigration>(
        "select history, filename as name, hash from graphile_migrate.histories order by date, filename",
      );
      return rows;
    }
    if (!migrations || !(await hasSingleHistory(client))) return [];
    const { rows } = await client.query<AppliedMigration>(
      "select null as history, filename as name, hash from graphile_migrate.migrations order by filename",
    );
    return rows;
  } catch (error) {
    if ((error as pg.DatabaseError).code !== "42501") throw error;
    throw new Error(
      "The login of DATABASE_URL may not see which migrations are applied. Set OWNER_DATABASE_URL to the same database as its owner.",
    );
  }
}

/** Postgres refuses to look into a schema that is closed to the login. */
async function recordOf(client: pg.ClientBase): Promise<{ histories: boolean; migrations: boolean }> {
  const { rows } = await client.query<{ histories: boolean; migrations: boolean }>(
    `select to_regclass('graphile_migrate.histories') is not null as histories,
      to_regclass('graphile_migrate.migrations') is not null as migrations`,
  );
  return rows[0]!;
}

async function hasSingleHistory(client: pg.ClientBase): Promise<boolean> {
  const { rowCount } = await client.query("select from graphile_migrate.migrations where hash = $1", [SINGLE_HISTORY]);
  return rowCount === 1;
}

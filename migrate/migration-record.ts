import type pg from "pg";

/** The setting that selects the history whose migrations graphile-migrate sees. */
export const HISTORY_SETTING = "content_service.history";

/**
 * graphile-migrate uses one table of migrations. Here it is a view of the history that the connection selects, so that
 * each history is applied and recorded separately.
 */
const CREATE_RECORD = `
  create schema if not exists graphile_migrate;
  create table graphile_migrate.histories (
    history       text not null default pg_catalog.current_setting('${HISTORY_SETTING}'),
    hash          text not null,
    previous_hash text,
    filename      text not null,
    date          timestamptz not null default pg_catalog.now(),
    constraint content_service_histories_pkey primary key (history, filename),
    constraint content_service_histories_history_hash_key unique (history, hash)
  );
  create view graphile_migrate.migrations as
    select hash, previous_hash, filename, date from graphile_migrate.histories
    where history = pg_catalog.current_setting('${HISTORY_SETTING}');
  create table if not exists graphile_migrate.current (
    filename text constraint content_service_current_pkey primary key default 'current.sql',
    content  text not null,
    date     timestamptz not null default pg_catalog.now()
  )`;

export async function createRecordTables(client: pg.ClientBase): Promise<void> {
  await client.query(CREATE_RECORD);
}

/** A migration of `committed/` for the record of applied migrations. */
type RecordedMigration = { readonly name: string; readonly hash: string; readonly previous: string | null };

export async function recordMigration(
  client: pg.ClientBase,
  history: string,
  { name, hash, previous }: RecordedMigration,
): Promise<void> {
  await client.query(
    "insert into graphile_migrate.histories (history, hash, previous_hash, filename) values ($1, $2, $3, $4)",
    [history, hash, previous, `${name.slice(0, 6)}.sql`],
  );
}

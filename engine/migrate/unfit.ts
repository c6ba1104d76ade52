import type pg from "pg";

const OLDEST_MAJOR = 14;

/** Half of the migrations would be applied before one of them is not understood. */
export async function refuseOldServer(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ number: number; release: string }>(
    "select current_setting('server_version_num')::int as number, current_setting('server_version') as release",
  );
  const { number, release } = rows[0]!;
  if (number >= OLDEST_MAJOR * 10_000) return;
  throw new Error(
    `The database is of Postgres ${release}, and ${OLDEST_MAJOR} is the oldest that can be served. Nothing was changed. ` +
      "Carry it over to a newer one with pg_upgrade or pg_dump.",
  );
}

/** What the migrations hold does not fit into other encodings, and half of them would be applied. */
export async function refuseOtherLetters(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ encoding: string; begun: boolean }>(
    `select current_setting('server_encoding') as encoding,
      to_regclass('graphile_migrate.migrations') is not null as begun`,
  );
  const { encoding, begun } = rows[0]!;
  if (encoding === "UTF8" || begun) return;
  throw new Error(
    `The database's encoding is ${encoding}, and the migrations want UTF8. Nothing was changed. ` +
      "Make another database: create database … template template0 encoding 'UTF8'.",
  );
}

/** Texts in SQL that is ours, or a function's, would be read as others than were written. */
export async function refuseOtherQuotes(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ login: string; is_standard: boolean }>(
    "select session_user as login, current_setting('standard_conforming_strings')::bool as is_standard",
  );
  const { login, is_standard: isStandard } = rows[0]!;
  if (isStandard) return;
  throw new Error(
    `standard_conforming_strings is off for the login "${login}", and SQL is read in another way then. ` +
      "Switch it on for the server, the database and the login.",
  );
}

/** Our schemas are written at a start already: by the queue of tasks, and by limits. */
export async function refuseReadOnly(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ login: string; reads_only: boolean; is_standby: boolean }>(
    `select session_user as login, current_setting('transaction_read_only')::bool as reads_only,
      pg_is_in_recovery() as is_standby`,
  );
  const { login, reads_only: readsOnly, is_standby: isStandby } = rows[0]!;
  if (!readsOnly) return;
  throw new Error(
    isStandby
      ? "The database is a standby, which takes no writes. Set DATABASE_URL and OWNER_DATABASE_URL to its primary, " +
          "and READ_DATABASE_URLS to standbys."
      : `The database takes no writes from the login "${login}": default_transaction_read_only is on. Switch it off for the ` +
          "server, the database and the login; where the provider has switched it on, the disk is full.",
  );
}

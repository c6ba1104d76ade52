import type pg from "pg";

/**
 * The search path on which nothing but Postgres's own objects is found, temporary ones last. With an empty path, temporary tables and types
 * would be found before those of Postgres.
 */
export const SAFE_SEARCH_PATH = "pg_catalog, pg_temp";

const KEEP_SAFE_SEARCH_PATH = `
  select case when pg_catalog.pg_backend_pid() operator(pg_catalog.=) $1::pg_catalog.int4
    then pg_catalog.set_config('search_path', '${SAFE_SEARCH_PATH}', false) end`;

/**
 * Gives a session of the service itself that path, so that its statements call nothing that a user has named as something of Postgres.
 * A session of a pooler keeps its path: others use it, too.
 */
export async function useSafeSearchPath(client: pg.ClientBase): Promise<void> {
  const { processID } = client as pg.ClientBase & { readonly processID: number | null };
  await client.query(KEEP_SAFE_SEARCH_PATH, [processID]);
}

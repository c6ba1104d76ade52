import type pg from "pg";

/**
 * The search path with only Postgres's own objects; temporary objects come last. With an empty path, Postgres would find temporary tables
 * and types before its own.
 */
export const SAFE_SEARCH_PATH = "pg_catalog, pg_temp";

const KEEP_SAFE_SEARCH_PATH = `
  select case when pg_catalog.pg_backend_pid() operator(pg_catalog.=) $1::pg_catalog.int4
    then pg_catalog.set_config('search_path', '${SAFE_SEARCH_PATH}', false) end`;

/**
 * Sets this path for a session of the service, so that its statements call no object that a user has named like one of Postgres.
 * A session of a pooler keeps its path, because other clients use it too.
 */
export async function useSafeSearchPath(client: pg.ClientBase): Promise<void> {
  const { processID } = client as pg.ClientBase & { readonly processID: number | null };
  await client.query(KEEP_SAFE_SEARCH_PATH, [processID]);
}

/**
 * The search path on which nothing but Postgres's own objects is found, temporary ones last. With an empty path, temporary tables and types
 * would be found before those of Postgres.
 */
export const SAFE_SEARCH_PATH = "pg_catalog, pg_temp";

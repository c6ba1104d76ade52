/** SQL that returns the timeline on a primary: the name of a WAL file begins with it. */
export const CURRENT_TIMELINE =
  "('x' || pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8))::bit(32)::pg_catalog.int4";

/** The snapshot of `pg_current_snapshot`. The timeline is null if the server is not a primary. */
export type PrimarySnapshot = { readonly snapshot: string; readonly timeline: number | null };

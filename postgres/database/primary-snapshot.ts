/** SQL, on a primary: the name of a WAL file begins with the timeline. */
export const CURRENT_TIMELINE =
  "('x' || pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8))::bit(32)::pg_catalog.int4";

/** As `pg_current_snapshot` returns it. The timeline is null on a server that is no primary. */
export type PrimarySnapshot = { readonly snapshot: string; readonly timeline: number | null };

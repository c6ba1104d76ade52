import pg from "pg";
import { endClient } from "../client/end-client.ts";
import { findServer } from "../client/server-finder.ts";

const CONNECT_TIMEOUT_MS = 5_000;

export type PoolName = "read" | "write" | "slow" | "stream";

type PoolSizes = Readonly<Record<PoolName, number>>;

/** The number of connections that this role can still open to this database, without the reserved ones. */
const FREE_CONNECTIONS = `
  select least(
    pg_catalog.current_setting('max_connections')::int
      operator(pg_catalog.-) pg_catalog.current_setting('superuser_reserved_connections')::int
      operator(pg_catalog.-) coalesce(pg_catalog.current_setting('reserved_connections', true), '0')::int
      operator(pg_catalog.-) (select coalesce(pg_catalog.sum(numbackends), 0)::int from pg_catalog.pg_stat_database),
    (select case when datconnlimit operator(pg_catalog.>=) 0 then datconnlimit operator(pg_catalog.-) numbackends end
       from pg_catalog.pg_database
       join pg_catalog.pg_stat_database on datid operator(pg_catalog.=) pg_database.oid
      where pg_database.datname operator(pg_catalog.=) pg_catalog.current_database()),
    (select case when rolconnlimit operator(pg_catalog.>=) 0 then rolconnlimit operator(pg_catalog.-) (
         select pg_catalog.count(*)::int from pg_catalog.pg_stat_activity where usename operator(pg_catalog.=) current_user
       ) end
       from pg_catalog.pg_roles
      where rolname operator(pg_catalog.=) current_user)
  )::int as free`;

export async function countFreeConnections(url: string): Promise<number> {
  const { client } = await findServer(url).connect(
    (server) => new pg.Client(server).on("error", () => {}),
    CONNECT_TIMEOUT_MS,
  );
  try {
    const { rows } = await client.query<{ free: number }>(FREE_CONNECTIONS);
    return rows[0]!.free;
  } finally {
    await endClient(client);
  }
}

/**
 * Reads share few connections, since each backend competes for the processors. Writes wait for the disk, which can commit
 * many at once, so they get many connections.
 */
export function idealSizes(processors: number): PoolSizes {
  return { read: Math.min(16, 2 * Math.max(2, processors)), write: 16, slow: 6, stream: 3 };
}

/** The minimum total with which the slow pool has two connections, so that one long statement leaves one free. */
const MIN_FOR_TWO_SLOW = 6;
/** The minimum total with which one long response leaves a connection to others. */
const MIN_FOR_TWO_STREAMS = 12;

/** Returns the ideal sizes if they fit; else each pool's proportional part of the total, with at least one connection each. */
export function divideConnections(total: number, ideal: PoolSizes): PoolSizes {
  const wanted = ideal.read + ideal.write + ideal.slow + ideal.stream;
  // Surplus connections are for writers.
  if (total >= wanted) return { ...ideal, write: ideal.write + Math.floor(total - wanted) };
  const minimum = {
    read: 1,
    write: 1,
    slow: total < MIN_FOR_TWO_SLOW ? 1 : 2,
    stream: total < MIN_FOR_TWO_STREAMS ? 1 : 2,
  };
  const names = Object.keys(ideal) as PoolName[];
  const shares = names.map((name) => ({ name, exact: (ideal[name] * total) / wanted }));
  const sizes = { ...minimum };
  for (const { name, exact } of shares) sizes[name] = Math.max(minimum[name], Math.floor(exact));
  let remaining = Math.floor(total) - names.reduce((sum, name) => sum + sizes[name], 0);
  for (const { name } of shares.toSorted((a, b) => (b.exact % 1) - (a.exact % 1))) if (remaining-- > 0) sizes[name]++;
  return sizes;
}

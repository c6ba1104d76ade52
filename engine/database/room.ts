import pg from "pg";

export type LaneName = "read" | "write" | "slow" | "stream";

export type LaneSizes = Readonly<Record<LaneName, number>>;

/** How many connections this role could still open to this database; the superusers' reserve is not ours. */
const FREE = `
  select least(
    current_setting('max_connections')::int
      - current_setting('superuser_reserved_connections')::int
      - coalesce(current_setting('reserved_connections', true), '0')::int
      - (select coalesce(sum(numbackends), 0) from pg_stat_database),
    (select nullif(datconnlimit, -1) - numbackends
       from pg_database join pg_stat_database on datid = pg_database.oid
      where pg_database.datname = current_database()),
    (select nullif(rolconnlimit, -1) - (select count(*) from pg_stat_activity where usename = current_user)
       from pg_roles
      where rolname = current_user)
  )::int as free`;

export async function askRoom(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  client.on("error", () => {});
  try {
    await client.connect();
    const { rows } = await client.query<{ free: number }>(FREE);
    return rows[0]!.free;
  } finally {
    await client.end();
  }
}

/**
 * Reads share a few links, since each further backend competes for the processors. Writes wait for the disk, which
 * writes for many at once, so they get many.
 */
export function idealSizes(processors: number): LaneSizes {
  return { read: Math.min(16, 2 * Math.max(2, processors)), write: 16, slow: 5, stream: 3 };
}

/** The ideal when there is room for it; else each lane's share of the total, but at least one link each. */
export function divideRoom(total: number, ideal: LaneSizes): LaneSizes {
  const { read, write, slow, stream } = ideal;
  const wanted = read + write + slow + stream;
  // Whoever grants more than that has many writers in mind.
  if (total >= wanted) return { ...ideal, write: write + Math.floor(total - wanted) };
  const share = (size: number) => Math.max(1, Math.floor((size * total) / wanted));
  return { read: share(read), write: share(write), slow: share(slow), stream: share(stream) };
}

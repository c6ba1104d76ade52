import type { Read } from "./reader.ts";

type ZoneRow = { name: string };

/** The names that `set timezone` and `Prefer: timezone=…` take. Postgres reads some 600 files for it: ask once per server version. */
export async function readTimeZones(read: Read): Promise<ReadonlySet<string>> {
  const rows = await read<ZoneRow>("timeZones", "select name from pg_timezone_names order by name");
  return new Set(rows.map(({ name }) => name));
}

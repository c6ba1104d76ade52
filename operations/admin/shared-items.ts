import type { AsOwner } from "#postgres/database";
import { resourceNotFound } from "./admin-errors.ts";

/** Runs work on a table of the platform; responds with 404 if the database has none, as without the platform. */
export function onPlatformTable(asOwner: AsOwner, table: string, absence: string): AsOwner {
  return (work) =>
    asOwner(async (owner) => {
      const { rows } = await owner.query<{ has: boolean }>("select pg_catalog.to_regclass($1) is not null as has", [
        table,
      ]);
      if (!rows[0]!.has) throw resourceNotFound(absence);
      return work(owner);
    });
}

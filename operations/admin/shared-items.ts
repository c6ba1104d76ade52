import type { AsOwner } from "#postgres/database";
import { invalidRequest, resourceNotFound } from "./admin-errors.ts";

/** The items of a kind that administrators may share. */
export const MAX_SHARED = 1_000;
const MAX_NAME = 200;

/** The name of an item, without space around it. */
export function readName(given: string): string {
  const name = given.trim();
  if (name === "" || name.length > MAX_NAME) throw invalidRequest(`The name has 1 to ${MAX_NAME} characters.`);
  return name;
}

/** A row of a shared item as JSON. */
export function sharedItem<Row extends { readonly saved_at: Date }>({ saved_at: savedAt, ...item }: Row) {
  return { ...item, saved_at: savedAt.toISOString() };
}

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

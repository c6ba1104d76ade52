import type { AsOwner } from "../database/as-owner.ts";

/** Queries the catalogue, because that is no error if the schema does not exist or is not accessible. */
const HAS_TASKS = `
  select from pg_class
  where relnamespace = (select oid from pg_namespace where nspname = 'private') and relname = 'tasks'
    and has_schema_privilege(relnamespace, 'usage') and has_table_privilege(oid, 'insert')
    and has_database_privilege(current_database(), 'create')`;

/** Whether tasks can be queued: the table exists, and this login may write to it and create the queue's schema. */
export async function hasTasks(asOwner: AsOwner): Promise<boolean> {
  const { rowCount } = await asOwner((client) => client.query(HAS_TASKS));
  return rowCount === 1;
}

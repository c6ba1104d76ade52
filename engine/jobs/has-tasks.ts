import type { AsOwner } from "../database/as-owner.ts";

/** Asked in the catalogue, where it is no error when there is no such schema or who asks may not look into it. */
const HAS_TASKS = `
  select from pg_class
  where relnamespace = (select oid from pg_namespace where nspname = 'private') and relname = 'tasks'
    and has_schema_privilege(relnamespace, 'usage') and has_table_privilege(oid, 'insert')
    and has_database_privilege(current_database(), 'create')`;

/** Whether work can be left here: the database keeps tasks, and we are asked as their owner, who may make the queue too. */
export async function hasTasks(asOwner: AsOwner): Promise<boolean> {
  const { rowCount } = await asOwner((client) => client.query(HAS_TASKS));
  return rowCount === 1;
}

import type { AsOwner } from "../database/as-owner.ts";

/** Asked in the catalogue, where it is no error when there is no such schema or who asks may not look into it. */
const HAS_ACCOUNTS = `
  select from pg_class
  where relnamespace = (select oid from pg_namespace where nspname = 'auth') and relname = 'credentials'
    and has_schema_privilege(relnamespace, 'usage') and has_table_privilege(oid, 'insert')
    and exists (select from pg_proc where pronamespace = relnamespace and proname = 'find_account')`;

/** Whether users can sign in here: the database has accounts, the application's users are connected to them, and the owner asks. */
export async function hasAccounts(asOwner: AsOwner): Promise<boolean> {
  const { rowCount } = await asOwner((client) => client.query(HAS_ACCOUNTS));
  return rowCount === 1;
}

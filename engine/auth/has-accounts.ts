import type { AsOwner } from "../database/as-owner.ts";

/** Queries the catalogue, because that is no error if the schema does not exist or is not accessible. */
const HAS_ACCOUNTS = `
  select from pg_class
  where relnamespace = (select oid from pg_namespace where nspname = 'auth') and relname = 'credentials'
    and has_schema_privilege(relnamespace, 'usage') and has_table_privilege(oid, 'insert')
    and exists (select from pg_proc where pronamespace = relnamespace and proname = 'find_account')`;

/** Whether users can sign in: this login owns the accounts, and they are connected to a table of users (auth.find_account). */
export async function hasAccounts(asOwner: AsOwner): Promise<boolean> {
  const { rowCount } = await asOwner((client) => client.query(HAS_ACCOUNTS));
  return rowCount === 1;
}

import type pg from "pg";

/**
 * A project of Supabase has Postgres's default: everybody may execute a new function. A release closes its functions, also in such a
 * database. If the process is killed in between, they stay closed until the project's migrations are applied again.
 */
const CLOSE_FUNCTIONS = "alter default privileges revoke execute on functions from public";
const OPEN_FUNCTIONS = "alter default privileges grant execute on functions to public";
const IS_OPEN = `
  select pg_catalog.to_regclass('supabase_auth.identity_rows') is not null as opens`;

export async function setDefaultPrivileges(client: pg.ClientBase, history: string): Promise<void> {
  const { rows } = await client.query<{ opens: boolean }>(IS_OPEN);
  if (rows[0]!.opens) await client.query(history === "project" ? OPEN_FUNCTIONS : CLOSE_FUNCTIONS);
}

import type pg from "pg";
import type { DoctorFinding } from "./facts.ts";

/** The hooks that the import of a Supabase project makes: triggers on accounts, with schema and name of the function as arguments. */
const MISSING_HOOKS = `
  select tgname as trigger, hook[1] as schema, hook[2] as name
  from pg_catalog.pg_trigger, pg_catalog.string_to_array(pg_catalog.encode(tgargs, 'escape'), '\\000') as hook
  where tgrelid = pg_catalog.to_regclass('auth.users') and tgfoid = pg_catalog.to_regproc('supabase_auth.tg_users__call_hook')
    and not exists (
      select from pg_catalog.pg_proc join pg_catalog.pg_namespace on pg_namespace.oid = pronamespace
      where nspname operator(pg_catalog.=) hook[1] and proname operator(pg_catalog.=) hook[2]
    )`;

type MissingHook = { readonly trigger: string; readonly schema: string; readonly name: string };

/** Finds functions that each sign-up calls, and that do not exist. */
export async function readSignUpFindings(owner: pg.ClientBase): Promise<DoctorFinding[]> {
  const { rows } = await owner.query<MissingHook>(MISSING_HOOKS);
  return rows.map(({ trigger, schema, name }) => ({
    kind: "danger",
    problem: `Nobody can sign up: a trigger of auth.users calls the hook ${schema}.${name}, which does not exist.`,
    fix: `Create the function, or: drop trigger ${trigger} on auth.users;`,
  }));
}

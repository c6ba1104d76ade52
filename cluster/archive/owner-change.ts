import type pg from "pg";

const OWNER_CHANGE = /^alter .* owner to (\S+|"(?:[^"]|"")+")$/s;

/** The role to which a statement gives an object, as it is quoted there; null for other statements. */
export function newOwnerOf(statement: string): string | null {
  return OWNER_CHANGE.exec(statement)?.[1] ?? null;
}

const SCHEMAS_WITHOUT = `
  select pg_catalog.quote_ident(nspname) as name from pg_catalog.pg_namespace
  where nspname !~ '^pg_' and pg_catalog.pg_has_role(current_user, nspowner, 'usage')
    and not pg_catalog.has_schema_privilege($1::pg_catalog.regrole, oid, 'create')`;

/**
 * Runs the statement while the new owner may create objects in the schemas of the current role, which Postgres requires of an owner unless
 * a superuser chooses it.
 */
export async function withOwnerInSchemas(client: pg.ClientBase, owner: string, statement: string): Promise<void> {
  const { rows } = await client.query<{ name: string }>(SCHEMAS_WITHOUT, [owner]);
  const schemas = rows.map(({ name }) => name).join(", ");
  if (schemas) await client.query(`grant create on schema ${schemas} to ${owner}`);
  await client.query(statement);
  if (schemas) await client.query(`revoke create on schema ${schemas} from ${owner}`);
}

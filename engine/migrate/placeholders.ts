import type pg from "pg";

/** As graphile-migrate does in committed migrations. */
export async function fillPlaceholders(client: pg.ClientBase, sql: string): Promise<string> {
  const { rows } = await client.query<{ database: string; owner: string }>(
    "select current_database() as database, session_user as owner",
  );
  const { database, owner } = rows[0]!;
  return sql.replace(/:DATABASE_NAME\b/g, () => database).replace(/:DATABASE_OWNER\b/g, () => owner);
}

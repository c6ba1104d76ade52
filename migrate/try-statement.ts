import type pg from "pg";

/** Runs a statement in a transaction that continues if it fails. Returns null if it succeeds. */
export async function tryStatement(client: pg.ClientBase, statement: string): Promise<pg.DatabaseError | null> {
  await client.query("savepoint statement");
  try {
    await client.query(statement);
    await client.query("release savepoint statement");
    return null;
  } catch (error) {
    await client.query("rollback to savepoint statement");
    return error as pg.DatabaseError;
  }
}

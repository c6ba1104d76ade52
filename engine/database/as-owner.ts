import type pg from "pg";

/** Lends a connection of the database's owner, for what no caller may do. */
export type AsOwner = <T>(work: (client: pg.ClientBase) => Promise<T>) => Promise<T>;

/**
 * Done whole or not at all. Read committed, whatever the database's default is: a statement that has waited for an
 * account is to see what it waited for.
 */
export function inTransaction<T>(asOwner: AsOwner, work: (client: pg.ClientBase) => Promise<T>): Promise<T> {
  return asOwner(async (client) => {
    await client.query("begin isolation level read committed");
    try {
      const result = await work(client);
      await client.query("commit");
      return result;
    } catch (error) {
      // Where the connection was lost, Postgres has rolled back by itself.
      await client.query("rollback").catch(() => {});
      throw error;
    }
  });
}

import type pg from "pg";

type Row = Record<string, unknown>;

export type Ask = {
  /** The only value of the statement. */
  value(sql: string): Promise<unknown>;
  rows(sql: string): Promise<Row[]>;
  /** The code of the error that the statement ends with. */
  refusal(sql: string): Promise<string>;
};

/** Runs the work as the owner, and undoes it. */
export async function rolledBack(owner: pg.Client, work: (ask: Ask) => Promise<void>): Promise<void> {
  const rows = async (sql: string) => (await owner.query<Row>(sql)).rows;
  await owner.query("begin");
  try {
    await work({
      rows,
      value: async (sql) => Object.values((await rows(sql))[0] ?? {})[0],
      async refusal(sql) {
        await owner.query("savepoint before");
        const error = await owner.query(sql).then(
          () => null,
          (thrown: pg.DatabaseError) => thrown,
        );
        await owner.query("rollback to savepoint before");
        return error?.code ?? "none";
      },
    });
  } finally {
    await owner.query("rollback");
  }
}

/** Work in a database that these statements have changed; both are undone. */
export function rolledBackAfter(content: { readonly owner: pg.Client }, statements: string) {
  return (work: (ask: Ask) => Promise<void>): Promise<void> =>
    rolledBack(content.owner, async (ask) => {
      await ask.rows(statements);
      await work(ask);
    });
}

import type pg from "pg";
import type { Context, Statement } from "../database/statement.ts";
import { quotedName } from "../quoted-name.ts";

/** Work in a transaction that changes nothing, with the caller's settings. The owner keeps its role. */
export async function undone<T>(
  client: pg.ClientBase,
  { role, settings }: Context,
  { asRole }: { asRole: boolean },
  work: () => Promise<T>,
): Promise<T> {
  await client.query("begin read only");
  try {
    for (const [name, value] of settings) await client.query("select set_config($1, $2, true)", [name, value]);
    if (asRole) await client.query(`set local role ${quotedName(role)}`);
    return await work();
  } finally {
    await client.query("rollback");
  }
}

/** Its plan, with the time that it took. */
export async function explainStatement(client: pg.ClientBase, { text, values }: Statement): Promise<string> {
  const { rows } = await client.query<{ "QUERY PLAN": string }>(`explain (analyze, timing off) ${text}`, [...values]);
  return rows.map((row) => row["QUERY PLAN"]).join("\n");
}

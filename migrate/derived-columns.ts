import type pg from "pg";
import type { DerivedColumn } from "./plan-statements.ts";
import { hasEquality, type PlannedTable, readExpressionTypes } from "./planned-table.ts";

export const listNames = (columns: readonly { readonly quoted: string }[]) =>
  columns.map(({ quoted }) => quoted).join(", ");

/** Throws if Postgres does not accept an expression or its type. */
export async function requireAssignable(
  client: pg.ClientBase,
  table: PlannedTable,
  added: readonly DerivedColumn[],
  old: readonly DerivedColumn[],
): Promise<void> {
  const values = (columns: readonly DerivedColumn[]) =>
    columns.map(({ expression, type }) => `(${expression})::${type}`);
  const given = added.map(({ quoted, type }) => `null::${type} as ${quoted}`).join(", ");
  await readExpressionTypes(client, values(added), table.quoted);
  await readExpressionTypes(client, values(old), `(select ${given}) as given`);
}

/** A condition that the columns have the values of their expressions; it is never null. */
export async function compareValues(client: pg.ClientBase, columns: readonly DerivedColumn[]): Promise<string> {
  const terms: string[] = [];
  for (const { quoted, type, expression } of columns) {
    const cast = (await hasEquality(client, type)) ? "" : "::pg_catalog.text";
    const value = /^[\w"]+$/.test(expression) ? expression : `(${expression})`;
    terms.push(`${quoted}${cast} is not distinct from ${value}${cast}`);
  }
  return terms.join(" and ");
}

/** A condition that either side has the values of the other: new columns may hold more than the old ones, which then follow from them. */
export async function compareBothWays(
  client: pg.ClientBase,
  added: readonly DerivedColumn[],
  old: readonly DerivedColumn[],
): Promise<string> {
  return `(${await compareValues(client, added)}) or (${await compareValues(client, old)})`;
}

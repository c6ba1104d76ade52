import type pg from "pg";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Policy } from "../../engine/catalog/policies.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import { quotedName } from "../../engine/quoted-name.ts";

export type Verdict = {
  readonly policy: Policy;
  /** Null where its condition is neither true nor false, which hides the row as well. */
  readonly passes: boolean | null;
};

/** The policies that judge what the role reads of the table; none where the role is not bound by any. */
export function judging(table: Table, role: string, catalog: Catalog): readonly Policy[] {
  return table.policies.filter(
    ({ command, roles }) =>
      (command === "all" || command === "select") &&
      roles.some((name) => name === "public" || catalog.hasRole(role, name)),
  );
}

/** What each policy says of one row. Asked as the owner, who sees it, in a transaction that has the caller's settings. */
export async function verdictsOn(
  key: readonly unknown[],
  { table, policies, owner }: { table: Table; policies: readonly Policy[]; owner: pg.ClientBase },
): Promise<Verdict[]> {
  if (policies.length === 0) return [];
  // Conditions as Postgres prints them, which name the table's columns without the table.
  const conditions = policies.map(({ using }) => `(${using ?? "true"})`).join(", ");
  const found = table.primaryKey.map((column, index) => `${quotedName(column)} = $${index + 1}`).join(" and ");
  const { rows } = await owner.query<(boolean | null)[]>({
    text: `select ${conditions} from ${quotedName(table.schema, table.name)} where ${found}`,
    values: [...key],
    rowMode: "array",
  });
  return policies.map((policy, index) => ({ policy, passes: rows[0]?.[index] ?? null }));
}

import type { Column, Table } from "./described.ts";
import { isRecord } from "./exact.ts";
import { qualified, quoted } from "./rows.ts";
import type { Served } from "./served.ts";

/** Types that Postgres compares neither for equality nor for order. */
const WITHOUT_EQUALITY: ReadonlySet<string> = new Set(["json", "xml", "point"]);

export function isComparable({ baseType }: Column): boolean {
  return !WITHOUT_EQUALITY.has(baseType);
}

/** A value that stands in the column, as text; null where there is none. */
export async function someValue({ sql }: Served, table: Table, { name }: Column): Promise<string | null> {
  const [row] = await sql(
    `select ${quoted(name)}::text as value from ${qualified(table)} where ${quoted(name)} is not null order by 1 limit 1`,
  );
  return isRecord(row) ? String(row.value) : null;
}

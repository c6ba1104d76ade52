import type { Column } from "../../engine/catalog/columns.ts";
import { quotedName } from "../../engine/quoted-name.ts";

/** Something about a row that only Postgres knows: what a value means depends on the column's type. */
export type Question = { readonly column: string; readonly operator: Asked; readonly value: string };

export type Asked = keyof typeof SQL;

const SQL = {
  eq: "=",
  lt: "<",
  lte: "<=",
  gt: ">",
  gte: ">=",
  like: "~~",
  ilike: "~~*",
  match: "~",
  imatch: "~*",
} as const;
const PATTERNS: readonly string[] = ["like", "ilike", "match", "imatch"];

/** Whether the value is a pattern, which can take any time to be held against a text. */
export function isPattern(operator: string): boolean {
  return PATTERNS.includes(operator);
}

/** `"price" < $1::"pg_catalog"."numeric"`; both sides are SQL already. */
export function comparison(left: string, operator: Asked, right: string, column: Pick<Column, "baseType">): string {
  // A pattern is a text whatever it is held against.
  return `${left} ${SQL[operator]} ${right}::${isPattern(operator) ? "text" : valueType(column)}`;
}

/** By its full name it has no modifier that would cut a value. */
export function valueType({ baseType }: Pick<Column, "baseType">): string {
  return quotedName(baseType.schema, baseType.name);
}

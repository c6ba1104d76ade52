import type { Catalog } from "#catalog";
import { quotedName } from "#postgres/client";
import type { Statement } from "#postgres/statement";
import { rowSql, type ShapeDefinition } from "./shape-definition.ts";
import { ConditionWriter, columnSql, ROW, type ShapeTable } from "./where/condition-sql.ts";
import { invalidCondition, readTokens, type Token } from "./where/condition-tokens.ts";
import { parseCondition } from "./where/parse-condition.ts";

const ORDER_BY = "subset__order_by";

/** Some rows of a shape, which are read once. */
export type ShapeSubset = {
  readonly where: string | null;
  readonly values: ReadonlyMap<number, string>;
  readonly orderBy: string | null;
  readonly limit: number | null;
  readonly offset: number | null;
};

/** The columns of the result: its rows, all rows as the shape's statement returns them, and the snapshot. */
export function defineSubset(
  { table, columns, statement, condition }: ShapeDefinition,
  { where, values, orderBy, limit, offset }: ShapeSubset,
  { catalog, role }: { readonly catalog: Catalog; readonly role: string },
): Statement {
  const of = { table, catalog, role };
  const writer = new ConditionWriter(of, "subset__where", [...statement.values] as (string | null)[]);
  const isAll = where === null || where.trim() === "";
  const narrower = isAll ? "true" : writer.write(parseCondition({ text: where, values, parameter: "subset__where" }));
  const order = [
    ...(orderBy === null ? [] : parseOrder(orderBy, of)),
    ...table.primaryKey.map((name) => quotedName(ROW, name)),
  ];
  const range = [limit, offset].map((count) => `$${writer.values.push(count === null ? null : String(count))}`);
  return {
    text: `select coalesce(pg_catalog.json_agg(subset.row), '[]')::pg_catalog.text,
  (${statement.text}),
  pg_catalog.pg_current_snapshot()::pg_catalog.text
from (select ${rowSql(columns)} as row from ${quotedName(table.schema, table.name)} as ${ROW}
  where ${condition} and ${narrower} order by ${order.join(", ")} limit ${range[0]} offset ${range[1]}) as subset`,
    values: writer.values,
  };
}

const DIRECTION = /^(?:ASC|DESC)?(?:(?:^| )NULLS (?:FIRST|LAST))?$/;

/** `title desc nulls last, id` */
function parseOrder(text: string, of: ShapeTable): string[] {
  const terms: Token[][] = [[]];
  for (const token of readTokens(text, ORDER_BY)) {
    if (token.kind === "symbol" && token.text === ",") terms.push([]);
    else terms.at(-1)!.push(token);
  }
  const end = terms.at(-1)!.pop()!;
  return terms.map(([column = end, ...others]) => {
    if (column.kind !== "name") throw invalidCondition(ORDER_BY, column.at, "expected a column");
    const direction = others.map((token) => (token.kind === "name" ? token.word : null) ?? "?").join(" ");
    if (!DIRECTION.test(direction))
      throw invalidCondition(ORDER_BY, others[0]!.at, "expected ASC, DESC, NULLS FIRST, NULLS LAST or a comma");
    return `${columnSql(of, column, ORDER_BY)} ${direction}`;
  });
}

import type { Aggregate, JsonStep } from "../intent.ts";
import type { Expression, Row } from "../plan/selection.ts";
import { selectQuery, sourceClause, whereClause } from "./select.ts";
import { fromCatalog, identifier, integer, join, literal, qualified, ROW, type Sql, sql } from "./sql.ts";
import { typeName } from "./type-name.ts";

const AGGREGATES: Readonly<Record<Aggregate, Sql>> = {
  count: sql`count`,
  sum: sql`sum`,
  avg: sql`avg`,
  min: sql`min`,
  max: sql`max`,
};

export function expression(given: Expression): Sql {
  switch (given.kind) {
    case "column":
      return identifier(given.of, given.name);
    case "one":
      return sql`1`;
    case "json":
      return sql`${jsonValue(given.of, given.convert)}${join(given.path.map(jsonStep), "")}`;
    case "represented":
      return sql`${fromCatalog(given.by)}(${expression(given.of)})`;
    case "cast":
      return sql`cast(${expression(given.of)} as ${typeName(given.type)})`;
    case "aggregate":
      return sql`${AGGREGATES[given.name]}(${given.of ? expression(given.of) : sql`*`})`;
    case "lookup":
      return sql`(select ${expression(given.value)}${sourceClause(given.from)}${whereClause(given.from)} limit 1)`;
    case "embedded":
      return embedded(given);
  }
}

function jsonValue(value: Expression, convert: boolean): Sql {
  return convert ? sql`to_jsonb(${expression(value)})` : expression(value);
}

/** Keys are part of what is asked, as column names are: so an index on the expression can serve it. */
function jsonStep({ arrow, key }: JsonStep): Sql {
  const step = typeof key === "number" ? integer(key) : literal(key);
  return arrow === "->" ? sql`->${step}` : sql`->>${step}`;
}

/**
 * Looked up for each row, and not joined: what is joined is so before the rows are sorted and cut off (for 20 of 300,000
 * rows 993 ms instead of 57 ms), and may change the order in which a function gives its rows.
 */
function embedded({ form, from }: Expression & { kind: "embedded" }): Sql {
  const rows = selectQuery(from);
  return form === "object"
    ? sql`(select row_to_json(${ROW}) from (${rows}) "_")`
    : sql`(select coalesce(json_agg(${ROW}), '[]') from (${rows}) "_")`;
}

/** The row as an argument. One of a result gets its type back. */
export function rowArgument({ of, as }: Row): Sql {
  if (!as) return sql`${identifier(of)}.*`;
  const values = as.columns.map((name) => identifier(of, name));
  return sql`row(${join(values, ", ")})::${qualified(as.type)}`;
}

import type { Ordering, Output, Selection, Source, Spread } from "../plan/selection.ts";
import { callSource } from "./call.ts";
import { allOf } from "./condition.ts";
import { expression, rowArgument } from "./expression.ts";
import { identifier, integer, join, NOTHING, operatorIn, qualified, type Sql, sql } from "./sql.ts";

const DIRECTIONS = { asc: sql` asc`, desc: sql` desc` };
const NULLS = { first: sql` nulls first`, last: sql` nulls last` };

/** The CTE of what was changed or called before. */
export const RESULT = identifier("result");

export function selectQuery(selection: Selection): Sql {
  const { order, offset, limit } = selection;
  const orderBy = order.length > 0 ? sql` order by ${join(order.map(orderTerm), ", ")}` : NOTHING;
  // Literals: for a limit that is a parameter Postgres plans anew each time.
  const most = limit === null ? NOTHING : sql` limit ${integer(limit)}`;
  const skipped = offset === 0 ? NOTHING : sql` offset ${integer(offset)}`;
  return sql`${unorderedQuery(selection)}${orderBy}${most}${skipped}`;
}

/** All of its rows, whatever its window. */
export function unorderedQuery(selection: Selection): Sql {
  const { source, alias, outputs, spreads } = selection;
  const list = outputs.map((output) => sql` ${outputClause(output, alias)}`);
  const lateral = join(
    spreads.map((spread) => spreadClause(spread, source)),
    "",
  );
  return sql`select${join(list, ",")}${sourceClause(selection)}${lateral}${whereClause(selection)}${groupClause(selection)}`;
}

export function sourceClause({ source, alias }: Selection): Sql {
  return sql` from ${sourceRows(source, alias)}`;
}

export function whereClause({ where }: Selection): Sql {
  return where.length > 0 ? sql` where ${allOf(where)}` : NOTHING;
}

function sourceRows(source: Source, alias: string): Sql {
  const as = identifier(alias);
  switch (source.kind) {
    case "table": {
      const table = sql`${qualified(source.name)} as ${as}`;
      if (!source.through) return table;
      const { table: junction, alias: between, on } = source.through;
      const pairs = on.map(({ junction: column, target, operatorSchema }) => {
        return sql`${identifier(between, column)} ${operatorIn(operatorSchema, sql`=`)} ${identifier(alias, target)}`;
      });
      return sql`${table} join ${qualified(junction)} as ${identifier(between)} on ${join(pairs, " and ")}`;
    }
    case "row function":
      return sql`${qualified(source.routine)}(${rowArgument(source.row)}) as ${as}`;
    case "call":
      return callSource(source.call);
    case "result":
      return sql`${RESULT} as ${as}`;
  }
}

export function outputClause(output: Output, alias: string): Sql {
  if (output.kind === "all") return sql`${identifier(alias)}.*`;
  const { name, value } = output;
  if (value.kind === "column" && value.name === name) return expression(value);
  return sql`${expression(value)} as ${identifier(name)}`;
}

function spreadClause({ alias, form, selection }: Spread, { kind }: Source): Sql {
  const rows = selectQuery(selection);
  const columns = form === "columns" ? rows : arraysOf(selection, rows);
  // The rows of a function come in an order of its own, which any join but a nested loop could change.
  const apart = kind === "table" || selection.offset > 0 ? NOTHING : sql` offset 0`;
  return sql` left join lateral (${columns}${apart}) as ${identifier(alias)} on true`;
}

function arraysOf({ outputs }: Selection, rows: Sql): Sql {
  const arrays = outputs.map((output) => {
    const name = identifier(output.kind === "all" ? "" : output.name);
    return sql`coalesce(json_agg("_".${name}), '[]') as ${name}`;
  });
  return sql`select ${join(arrays, ", ")} from (${rows}) "_"`;
}

function groupClause({ grouped, outputs }: Selection): Sql {
  const keys = outputs.flatMap((output, index) =>
    output.kind === "value" && output.isAggregate ? [] : [groupKey(output, index)],
  );
  return grouped && keys.length > 0 ? sql` group by ${join(keys, ", ")}` : NOTHING;
}

/** By position: a name could mean a column that is not in the list. JSON knows no equality, but what it is made of does. */
function groupKey(output: Output, index: number): Sql {
  const isRepresented = output.kind === "value" && output.value.kind === "represented";
  return isRepresented ? expression(output.value.of) : integer(index + 1);
}

function orderTerm({ value, direction, nulls }: Ordering): Sql {
  const toward = direction ? DIRECTIONS[direction] : NOTHING;
  return sql`${expression(value)}${toward}${nulls ? NULLS[nulls] : NOTHING}`;
}

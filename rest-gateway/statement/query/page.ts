import { type Output, type Selection, showing } from "../plan/selection.ts";
import { selectQuery } from "./select.ts";
import { identifier, join, type Sql, sql } from "./sql.ts";

/** No row is found in two ways, and of each way no more are read than a page can have. */
export function keptRows(ways: readonly Selection[]): Sql {
  if (ways.length === 1) return selectQuery(ways[0]!);
  return join(
    ways.map((way) => sql`(${selectQuery(way)})`),
    " union all ",
  );
}

/** By what the last row is ordered, as a JSON array of texts, if there is a next one; an empty array if both are in one place. */
export function placeColumn(rows: Selection): Sql {
  const limit = rows.limit!;
  const names = rows.order.map((_, index) => `c${index + 1}`);
  const valuesOf = (row: string) => names.map((name) => identifier(row, name));
  const texts = valuesOf("last").map((value) => sql`${value}::text`);
  const isApart = sql`(${join(valuesOf("last"), ", ")}) is distinct from (${join(valuesOf("next"), ", ")})`;
  const place = sql`case when ${isApart} then json_build_array(${join(texts, ", ")}) else '[]' end`;
  return sql`(select ${place} from (${rowAt(limit - 1)}) "last", (${rowAt(limit)}) "next")`;

  function rowAt(offset: number): Sql {
    const outputs = rows.order.map(
      ({ value }, index): Output => ({ kind: "value", name: names[index]!, value, isAggregate: false }),
    );
    return selectQuery({ ...showing(outputs, rows), limit: 1, offset });
  }
}

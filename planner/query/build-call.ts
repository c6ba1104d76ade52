import type { KeptColumns } from "../plan/plan.ts";
import type { RoutineCall, RoutineParameter } from "../plan/selection.ts";
import { catalogSql, identifier, join, NOTHING, parameter, qualifiedIdentifier, type Sql, sql } from "./sql.ts";

/** The column name of a scalar result. */
export const SCALAR_COLUMN = "pgrst_scalar";

const PAYLOAD_PARAMETER = { kind: "payload" } as const;

/** Selects the kept columns of a function's result. */
export function buildCall(call: RoutineCall, { wholeRow, names }: KeptColumns): Sql {
  const columns = names.map((name) => identifier(call.alias, name));
  const kept = wholeRow ? [sql`${identifier(call.alias)}.*`, ...columns] : columns;
  return sql`select ${kept.length > 0 ? join(kept, ", ") : sql`1`} from ${callFromItem(call)}`;
}

/** The function call as a FROM item. */
export function callFromItem(call: RoutineCall): Sql {
  const { routine, alias, isScalar } = call;
  const called = sql`${qualifiedIdentifier(routine)}(${argumentList(call)})`;
  // A SELECT list allows functions that FROM does not, such as those that return arbitrary records.
  const rows = isScalar ? sql`(select ${called} as ${identifier(SCALAR_COLUMN)})` : called;
  const source = sql`${rows} as ${identifier(alias)}`;
  const routineArguments = call.arguments;
  const before = [
    ...(call.row ? [sql`${qualifiedIdentifier(call.row.table)} as ${identifier(call.row.alias)}`] : []),
    ...(routineArguments.kind === "record" ? [argumentRecord(routineArguments)] : []),
  ];
  return before.length > 0 ? sql`${join(before, ", ")}, lateral ${source}` : source;
}

/** Positional arguments precede named ones. */
function argumentList(call: RoutineCall): Sql {
  const row = call.row ? [sql`${identifier(call.row.alias)}.*`] : [];
  const others = call.arguments.kind === "none" ? [] : [remainingArguments(call)];
  return join([...row, ...others], ", ");
}

function remainingArguments({ arguments: routineArguments }: RoutineCall): Sql {
  switch (routineArguments.kind) {
    case "none":
      return NOTHING;
    case "body":
      return sql`${parameter(PAYLOAD_PARAMETER)}::${catalogSql(routineArguments.sqlType)}`;
    case "each":
      return join(
        routineArguments.parameters.map((each) =>
          argumentSql(each, sql`${parameter(each.parameter)}::${catalogSql(each.sqlType)}`, routineArguments),
        ),
        ", ",
      );
    case "record":
      return join(
        routineArguments.parameters.map((each) =>
          argumentSql(each, identifier(routineArguments.alias, each.name), routineArguments),
        ),
        ", ",
      );
  }
}

function argumentSql(
  { name, variadic }: RoutineParameter,
  value: Sql,
  { positional }: { readonly positional: boolean },
): Sql {
  return sql`${variadic ? sql`variadic ` : NOTHING}${positional ? value : sql`${identifier(name)} := ${value}`}`;
}

function argumentRecord({ alias, isArray, parameters }: RoutineCall["arguments"] & { kind: "record" }): Sql {
  const columns = parameters.map(({ name, sqlType }) => sql`${identifier(name)} ${catalogSql(sqlType)}`);
  const as = sql`as ${identifier(alias)}`;
  const list = join(columns, ", ");
  if (!isArray) return sql`pg_catalog.json_to_record(${parameter(PAYLOAD_PARAMETER)}::pg_catalog.json) ${as}(${list})`;
  return sql`(select * from pg_catalog.json_to_recordset(${parameter(PAYLOAD_PARAMETER)}::pg_catalog.json) ${as}(${list}) limit 1) ${as}`;
}

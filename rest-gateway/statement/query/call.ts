import type { Call, Parameter } from "../plan/call.ts";
import type { Result } from "../plan/plan.ts";
import { fromCatalog, identifier, join, NOTHING, parameter, qualified, type Sql, sql } from "./sql.ts";

/** What a value that is no row is called as a column. */
export const SCALAR = "pgrst_scalar";

const PAYLOAD = { kind: "payload" } as const;

/** What is kept of what the function gives. */
export function callResult(call: Call, { wholeRow, names }: Result): Sql {
  const columns = names.map((name) => identifier(call.alias, name));
  const kept = wholeRow ? [sql`${identifier(call.alias)}.*`, ...columns] : columns;
  return sql`select ${kept.length > 0 ? join(kept, ", ") : sql`1`} from ${callSource(call)}`;
}

/** The function called, where its rows are read from. */
export function callSource(call: Call): Sql {
  const { routine, alias, isScalar } = call;
  const called = sql`${qualified(routine)}(${argumentList(call)})`;
  // In the list of a select a function may give what is not allowed in a from clause, such as records of any kind.
  const rows = isScalar ? sql`(select ${called} as ${identifier(SCALAR)})` : called;
  const source = sql`${rows} as ${identifier(alias)}`;
  const given = call.arguments;
  const before = [
    ...(call.row ? [sql`${qualified(call.row.table)} as ${identifier(call.row.alias)}`] : []),
    ...(given.kind === "record" ? [argumentRecord(given)] : []),
  ];
  return before.length > 0 ? sql`${join(before, ", ")}, lateral ${source}` : source;
}

/** What is passed by its place stands before what is passed by name. */
function argumentList(call: Call): Sql {
  const row = call.row ? [sql`${identifier(call.row.alias)}.*`] : [];
  const others = call.arguments.kind === "none" ? [] : [otherArguments(call)];
  return join([...row, ...others], ", ");
}

function otherArguments({ arguments: given }: Call): Sql {
  switch (given.kind) {
    case "none":
      return NOTHING;
    case "body":
      return sql`${parameter(PAYLOAD)}::${fromCatalog(given.sqlType)}`;
    case "each":
      return join(
        given.parameters.map((each) => passed(each, sql`${parameter(each.slot)}::${fromCatalog(each.sqlType)}`, given)),
        ", ",
      );
    case "record":
      return join(
        given.parameters.map((each) => passed(each, identifier(given.alias, each.name), given)),
        ", ",
      );
  }
}

function passed({ name, variadic }: Parameter, value: Sql, { byPlace }: { readonly byPlace: boolean }): Sql {
  return sql`${variadic ? sql`variadic ` : NOTHING}${byPlace ? value : sql`${identifier(name)} := ${value}`}`;
}

function argumentRecord({ alias, isArray, parameters }: Call["arguments"] & { kind: "record" }): Sql {
  const columns = parameters.map(({ name, sqlType }) => sql`${identifier(name)} ${fromCatalog(sqlType)}`);
  const as = sql`as ${identifier(alias)}`;
  const list = join(columns, ", ");
  if (!isArray) return sql`json_to_record(${parameter(PAYLOAD)}::json) ${as}(${list})`;
  return sql`(select * from json_to_recordset(${parameter(PAYLOAD)}::json) ${as}(${list}) limit 1) ${as}`;
}

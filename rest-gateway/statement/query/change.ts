import type { Change, Conflict } from "../plan/change.ts";
import type { Result } from "../plan/plan.ts";
import type { Element, Fallback, RecordColumn, Records } from "../plan/records.ts";
import type { Where } from "../plan/selection.ts";
import { allOf } from "./condition.ts";
import { readJson } from "./read-json.ts";
import {
  compile,
  fromCatalog,
  identifier,
  join,
  literal,
  NOTHING,
  parameter,
  qualified,
  type Sql,
  sql,
} from "./sql.ts";

const PAYLOAD = sql`${parameter({ kind: "payload" })}::json`;

/** The change, giving what is wanted of the rows that it writes. */
export function changeResult(change: Change, result: Result): Sql {
  switch (change.kind) {
    case "insert":
      return insertion(change, result);
    case "update":
      return update(change, result);
    case "delete":
      return sql`delete from ${qualified(change.table)}${whereAll(change.where)}${returning(change, result)}`;
  }
}

function insertion(change: Change & { kind: "insert" }, result: Result): Sql {
  const { table, records, conflict, where } = change;
  const names = records.columns.map(({ name }) => identifier(name));
  const into = names.length > 0 ? sql` (${join(names, ", ")})` : NOTHING;
  const values = records.columns.map(({ name }) => sql` ${identifier(records.alias, name)}`);
  const counting = conflict?.resolution === "merge" ? [COUNT_UP] : [];
  const conditions = [...counting, ...(where.length > 0 ? [allOf(where)] : [])];
  const only = conditions.length > 0 ? sql` where ${join(conditions, " and ")}` : NOTHING;
  const rows = sql`select${join(values, ",")} from ${recordRows(records)}${only}`;
  const unless = conflict ? onConflict(conflict, records) : NOTHING;
  return sql`insert into ${qualified(table)}${into} ${rows}${unless}${returning(change, result)}`;
}

/**
 * How many of the rows are new, and not changes of what was there: all are counted, and those that meet a conflict
 * taken off again. No privilege is needed for that, and views can do it too, which have no xmax.
 */
const COUNT = sql`coalesce(nullif(current_setting('pgrst.inserted', true), '')::int, 0)`;
const COUNT_UP = sql`set_config('pgrst.inserted', (${COUNT} + 1)::text, true) <> '0'`;
const COUNT_DOWN = sql`set_config('pgrst.inserted', (${COUNT} - 1)::text, true) <> '-1'`;

function onConflict({ columns, resolution }: Conflict, records: Records): Sql {
  const keys = join(
    columns.map((name) => identifier(name)),
    ", ",
  );
  if (resolution === "ignore" || records.columns.length === 0) return sql` on conflict (${keys}) do nothing`;
  const set = records.columns.map(({ name }) => sql`${identifier(name)} = excluded.${identifier(name)}`);
  return sql` on conflict (${keys}) do update set ${join(set, ", ")} where ${COUNT_DOWN}`;
}

function update(change: Change & { kind: "update" }, result: Result): Sql {
  const { table, records, findsUnchanged, where } = change;
  // Nothing to set is no update in SQL. To lock a row is allowed by the same privileges and policies.
  if (records.columns.length === 0) {
    const from = sql`select ${keptOf(change, result)} from ${qualified(table)}`;
    return findsUnchanged ? sql`${from}${whereAll(where)} for no key update` : sql`${from} where false`;
  }
  const set = records.columns.map(({ name }) => sql`${identifier(name)} = ${identifier(records.alias, name)}`);
  const from = sql`from ${recordRows(records)}`;
  return sql`update ${qualified(table)} set ${join(set, ", ")} ${from}${whereAll(where)}${returning(change, result)}`;
}

function whereAll(where: readonly Where[]): Sql {
  return where.length > 0 ? sql` where ${allOf(where)}` : NOTHING;
}

/** To return a column needs the privilege to select it: so nothing but what is wanted. */
function returning(change: Change, result: Result): Sql {
  return sql` returning ${keptOf(change, result)}`;
}

function keptOf({ table }: Change, { wholeRow, names }: Result): Sql {
  const columns = names.map((name) => identifier(table.name, name));
  const kept = wholeRow ? [sql`${identifier(table.name)}.*`, ...columns] : columns;
  return kept.length > 0 ? join(kept, ", ") : sql`1`;
}

/** The payload as rows that bear the columns' types. */
function recordRows(records: Records): Sql {
  const { alias, isArray, byColumn, columns } = records;
  if (byColumn) return columnRows(records);
  const as = identifier(alias);
  if (columns.length === 0) return isArray ? sql`json_array_elements(${PAYLOAD}) as ${as}` : sql`(values (1)) as ${as}`;
  const isPlain = columns.every(({ reader, fallback }) => reader === null && fallback === null);
  if (isPlain) return sql`${isArray ? TO_ROWS : TO_ROW}(${PAYLOAD}) as ${as}(${columnTypes(columns)})`;
  const values = columns.map((column, index) => sql`${recordValue(column, index)} as ${identifier(column.name)}`);
  const row = sql`${TO_ROW}("each"."json") as "row"(${columnTypes(columns)})`;
  return sql`(select ${join(values, ", ")} from ${eachRecord(records)}, ${row}) as ${as}`;
}

/**
 * The payload's objects, and beside each the defaults of its columns. One that has no need of them draws the next numbers
 * all the same, as with PostgREST, where clients may know which they are.
 */
function eachRecord({ isArray, columns }: Records): Sql {
  const objects = isArray ? sql`json_array_elements(${PAYLOAD})` : sql`(select ${PAYLOAD})`;
  const defaults = columns.flatMap(({ sqlType, fallback }, index) =>
    fallback ? [sql`${fallbackValue(fallback)}::${fromCatalog(sqlType)} as ${defaultName(index)}`] : [],
  );
  if (defaults.length === 0) return sql`${objects} as "each"("json")`;
  return sql`(select "json", ${join(defaults, ", ")} from ${objects} as "object"("json")) as "each"`;
}

function defaultName(index: number): Sql {
  return identifier(`default_${index + 1}`);
}

/** The same, from an array for each column. */
function columnRows({ alias, columns }: Records): Sql {
  const names = columns.map(({ name }) => identifier(name));
  const arrays = columns.map(({ name, element }) => columnArray(name, element!));
  const rows = (as: Sql) => sql`unnest(${join(arrays, ", ")}) as ${as}(${join(names, ", ")})`;
  if (columns.every(({ element }) => element!.cast === null)) return rows(identifier(alias));
  const values = columns.map(({ name, element }) => {
    const { cast } = element!;
    return cast === null ? identifier(name) : sql`${identifier(name)}::${fromCatalog(cast)}`;
  });
  return sql`(select ${join(values, ", ")} from ${rows(sql`"each"`)}) as ${identifier(alias)}(${join(names, ", ")})`;
}

function columnArray(name: string, { sqlType, isJson }: Element): Sql {
  return sql`${parameter({ kind: "column", name, isJson })}::${fromCatalog(sqlType)}[]`;
}

const TO_ROW = sql`json_to_record`;
const TO_ROWS = sql`json_to_recordset`;

function columnTypes(columns: readonly RecordColumn[]): Sql {
  const types = columns.map(
    ({ name, sqlType, reader }) => sql`${identifier(name)} ${reader ? sql`json` : fromCatalog(sqlType)}`,
  );
  return join(types, ", ");
}

/** A key that is there with null is null; one that is not there leaves the column its default. */
function recordValue({ name, sqlType, reader, fallback }: RecordColumn, index: number): Sql {
  const given = identifier("row", name);
  const value = reader ? readJson(reader, sqlType, given) : given;
  if (!fallback) return value;
  const isAbsent = sql`"each"."json"->${literal(name)} is null`;
  return sql`case when ${isAbsent} then "each".${defaultName(index)} else ${value} end`;
}

function fallbackValue(fallback: Fallback): Sql {
  if (fallback.kind === "expression") return sql`(${fromCatalog(fallback.text)})`;
  const { table, column } = fallback;
  const name = literal(compile(qualified(table)).text);
  return sql`nextval(pg_get_serial_sequence(${name}, ${literal(column)}))`;
}

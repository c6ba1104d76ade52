import type {
  ArrayElementPlan,
  ChangePlan,
  ColumnDefaultPlan,
  ConflictPlan,
  JsonReader,
  KeptColumns,
  RecordColumn,
  RecordsPlan,
} from "../plan/plan.ts";
import type { WherePredicate } from "../plan/selection.ts";
import { buildConjunction } from "./build-select.ts";
import {
  catalogSql,
  compile,
  identifier,
  join,
  literal,
  NOTHING,
  parameter,
  qualifiedIdentifier,
  type Sql,
  sql,
  TO_MEMBER,
} from "./sql.ts";

type TableChange = Extract<ChangePlan, { readonly kind: "insert" | "delete" }>;

export const PAYLOAD_JSON = sql`${parameter({ kind: "payload" })}::pg_catalog.json`;

/** The INSERT or DELETE with the kept columns of the written rows. */
export function buildChange(change: TableChange, result: KeptColumns): Sql {
  switch (change.kind) {
    case "insert":
      return buildInsert(change, result);
    case "delete":
      return sql`delete from ${qualifiedIdentifier(change.table)}${writeWhereClause(change.where)}${returning(change, result)}`;
  }
}

function buildInsert(change: ChangePlan & { kind: "insert" }, result: KeptColumns): Sql {
  const { table, records, conflict, where } = change;
  const names = records.columns.map(({ name }) => identifier(name));
  const into = names.length > 0 ? sql` (${join(names, ", ")})` : NOTHING;
  const values = records.columns.map(({ name }) => sql` ${identifier(records.alias, name)}`);
  const counting = conflict?.countsInserted ? [COUNT_UP] : [];
  const conditions = [...counting, ...(where.length > 0 ? [buildConjunction(where)] : [])];
  const only = conditions.length > 0 ? sql` where ${join(conditions, " and ")}` : NOTHING;
  const rows = sql`select${join(values, ",")} from ${recordsFromItem(records)}${only}`;
  const unless = conflict ? onConflict(conflict) : NOTHING;
  return sql`insert into ${qualifiedIdentifier(table)}${into} ${rows}${unless}${returning(change, result)}`;
}

/**
 * The number of inserted rows of an upsert: all rows minus those with a conflict. Needs no privilege and works for
 * views, which have no xmax.
 */
const INSERTED_COUNT = sql`coalesce(nullif(pg_catalog.current_setting('pgrst.inserted', true), '')::int, 0)`;
const COUNT_UP = sql`pg_catalog.set_config('pgrst.inserted', (${INSERTED_COUNT} operator(pg_catalog.+) 1)::pg_catalog.text, true) operator(pg_catalog.<>) '0'`;
const COUNT_DOWN = sql`pg_catalog.set_config('pgrst.inserted', (${INSERTED_COUNT} operator(pg_catalog.-) 1)::pg_catalog.text, true) operator(pg_catalog.<>) '-1'`;

function onConflict({ columns, resolution, set: changed, countsInserted }: ConflictPlan): Sql {
  const keys = join(
    columns.map((name) => identifier(name)),
    ", ",
  );
  if (resolution === "ignore" || changed.length === 0) return sql` on conflict (${keys}) do nothing`;
  const set = changed.map((name) => sql`${identifier(name)} = excluded.${identifier(name)}`);
  const counting = countsInserted ? sql` where ${COUNT_DOWN}` : NOTHING;
  return sql` on conflict (${keys}) do update set ${join(set, ", ")}${counting}`;
}

export function writeWhereClause(where: readonly WherePredicate[]): Sql {
  return where.length > 0 ? sql` where ${buildConjunction(where)}` : NOTHING;
}

/** The needed columns only: RETURNING requires SELECT on each column. */
export function returning(change: ChangePlan, result: KeptColumns): Sql {
  return sql` returning ${keptColumns(change, result)}`;
}

export function keptColumns({ table }: ChangePlan, { wholeRow, names }: KeptColumns): Sql {
  const columns = names.map((name) => identifier(table.name, name));
  const kept = wholeRow ? [sql`${identifier(table.name)}.*`, ...columns] : columns;
  return kept.length > 0 ? join(kept, ", ") : sql`1`;
}

/** The payload as rows with the columns' types. */
export function recordsFromItem(records: RecordsPlan): Sql {
  const { alias, isArray, byColumn, rowOf, columns } = records;
  if (byColumn) return unnestedColumns(records);
  const as = identifier(alias);
  if (columns.length === 0)
    return isArray ? sql`pg_catalog.json_array_elements(${PAYLOAD_JSON}) as ${as}` : sql`(values (1)) as ${as}`;
  const isPlain = columns.every(({ reader, missingValue }) => reader === null && missingValue === null);
  if (rowOf) {
    const row = sql`null::${qualifiedIdentifier(rowOf)}`;
    return sql`${isArray ? TO_TABLE_ROWS : TO_TABLE_ROW}(${row}, ${PAYLOAD_JSON}) as ${as}`;
  }
  if (isPlain) return sql`${isArray ? TO_ROWS : TO_ROW}(${PAYLOAD_JSON}) as ${as}(${columnTypes(columns)})`;
  const values = columns.map((column, index) => sql`${recordValue(column, index)} as ${identifier(column.name)}`);
  const row = sql`${TO_ROW}("each"."json") as "row"(${columnTypes(columns)})`;
  return sql`(select ${join(values, ", ")} from ${eachRecord(records)}, ${row}) as ${as}`;
}

/**
 * The payload's objects with the defaults of its columns. Sequences advance also for rows that do not need the default,
 * as in PostgREST.
 */
function eachRecord({ isArray, columns }: RecordsPlan): Sql {
  const objects = isArray ? sql`pg_catalog.json_array_elements(${PAYLOAD_JSON})` : sql`(select ${PAYLOAD_JSON})`;
  const defaults = columns.flatMap(({ sqlType, missingValue }, index) =>
    missingValue ? [sql`${buildDefault(missingValue)}::${catalogSql(sqlType)} as ${defaultName(index)}`] : [],
  );
  if (defaults.length === 0) return sql`${objects} as "each"("json")`;
  return sql`(select "json", ${join(defaults, ", ")} from ${objects} as "object"("json")) as "each"`;
}

function defaultName(index: number): Sql {
  return identifier(`default_${index + 1}`);
}

/** The payload as rows, built from one array per column. */
function unnestedColumns({ alias, columns }: RecordsPlan): Sql {
  const names = columns.map(({ name }) => identifier(name));
  const arrays = columns.map(({ name, element }) => columnArrayParameter(name, element!));
  // With several arrays, `unnest` is syntax, which has no schema and cannot be shadowed.
  const unnest = arrays.length > 1 ? sql`unnest` : sql`pg_catalog.unnest`;
  const rows = (as: Sql) => sql`${unnest}(${join(arrays, ", ")}) as ${as}(${join(names, ", ")})`;
  if (columns.every(({ element }) => element!.cast === null)) return rows(identifier(alias));
  const values = columns.map(({ name, element }) => {
    const { cast } = element!;
    return cast === null ? identifier(name) : sql`${identifier(name)}::${catalogSql(cast)}`;
  });
  return sql`(select ${join(values, ", ")} from ${rows(sql`"each"`)}) as ${identifier(alias)}(${join(names, ", ")})`;
}

function columnArrayParameter(name: string, { sqlType, isJson }: ArrayElementPlan): Sql {
  return sql`${parameter({ kind: "column", name, isJson })}::${catalogSql(sqlType)}[]`;
}

const TO_ROW = sql`pg_catalog.json_to_record`;
const TO_TABLE_ROW = sql`pg_catalog.json_populate_record`;
const TO_TABLE_ROWS = sql`pg_catalog.json_populate_recordset`;
const TO_ROWS = sql`pg_catalog.json_to_recordset`;

function columnTypes(columns: readonly RecordColumn[]): Sql {
  const types = columns.map(
    ({ name, sqlType, reader }) => sql`${identifier(name)} ${reader ? sql`json` : catalogSql(sqlType)}`,
  );
  return join(types, ", ");
}

/** A key with null is null; a missing key gets the column's default. */
function recordValue({ name, sqlType, reader, missingValue }: RecordColumn, index: number): Sql {
  const column = identifier("row", name);
  const value = reader ? readJsonValue(reader, sqlType, column) : column;
  if (!missingValue) return value;
  const isAbsent = sql`"each"."json"${TO_MEMBER}${literal(name)} is null`;
  return sql`case when ${isAbsent} then "each".${defaultName(index)} else ${value} end`;
}

export function buildDefault(missingValue: ColumnDefaultPlan): Sql {
  if (missingValue.kind === "expression") return sql`(${catalogSql(missingValue.text)})`;
  const { table, column } = missingValue;
  const name = literal(compile(qualifiedIdentifier(table)).text);
  return sql`pg_catalog.nextval(pg_catalog.pg_get_serial_sequence(${name}, ${literal(column)}))`;
}

/** The JSON value converted to the type. */
function readJsonValue(reader: JsonReader, sqlType: string, json: Sql): Sql {
  if (reader.kind === "function") return sql`${catalogSql(reader.name)}(${json})`;
  const { schema, isList } = reader;
  const as = sql`::${catalogSql(sqlType)}`;
  // Other JSON values are read by the type's input function, or are null.
  const asText = sql`(${json} operator(pg_catalog.#>>) '{}')${as}`;
  if (!isList)
    return sql`case pg_catalog.json_typeof(${json}) when 'object' then ${jsonToHstore(schema, json)}${as} else ${asText} end`;
  const item = identifier("item", "json");
  const itemText = sql`(${item} operator(pg_catalog.#>>) '{}')::${identifier(schema, "hstore")}`;
  const value = sql`case pg_catalog.json_typeof(${item}) when 'object' then ${jsonToHstore(schema, item)} else ${itemText} end`;
  const items = sql`array(select ${value} from pg_catalog.json_array_elements(${json}) as "item"("json"))`;
  return sql`case pg_catalog.json_typeof(${json}) when 'array' then ${items}${as} else ${asText} end`;
}

function jsonToHstore(schema: string, json: Sql): Sql {
  const pairs = sql`coalesce(pg_catalog.array_agg("key"), '{}'), coalesce(pg_catalog.array_agg("value"), '{}')`;
  return sql`(select ${identifier(schema, "hstore")}(${pairs}) from pg_catalog.json_each_text(${json}))`;
}

import type { QualifiedName } from "#catalog";
import type {
  ChangePlan,
  KeptColumns,
  LinkedValue,
  NestedColumn,
  NestedInsertPlan,
  RowLink,
  SavedRows,
} from "../plan/plan.ts";
import { buildDefault, keptColumns, PAYLOAD_JSON, recordsFromItem } from "./build-write.ts";
import {
  catalogSql,
  compile,
  identifier,
  integer,
  join,
  literal,
  NOTHING,
  operatorIn,
  qualifiedIdentifier,
  type Sql,
  type StatementTemplate,
  sql,
} from "./sql.ts";

const WRITTEN_CTE = sql`"written"`;
const EQUALS = sql`=`;

/** The failure of a nested insert or update; Postgres repeats it in the message (see `guardColumn`). */
export const NESTED_GUARD =
  /planner\.nested (?<problem>dropped|null|differs|missing|refused|repeated|parent) (?<row>\d+)(?: (?<column>\d+))?/;

/** Inserts rows in the order of the payload, which RETURNING preserves, and saves their keys. */
export function buildNestedInsert(plan: NestedInsertPlan): StatementTemplate {
  const { table, records, ordinal, columns, links, saved } = plan;
  const names = columns.map(({ name }) => identifier(name));
  const into = names.length > 0 ? sql` (${join(names, ", ")})` : NOTHING;
  const values = columns.map((column, index) => sql` ${columnValue(column, index, plan)}`);
  const joins = links.map((link) => {
    const isLinked = sql`${identifier(link.alias, SAVED_NAMES.row)} = ${identifier(records.alias, link.pointer)}`;
    return sql` left join ${linkedRows(link)} on ${isLinked}`;
  });
  const from = sql`from ${recordsFromItem(records)}${join(joins, "")}`;
  const rows = sql`select${join(values, ",")} ${from} order by ${identifier(records.alias, ordinal)}`;
  const keys = saved.columns.map((column, index) => savedColumn(table, column, index));
  const returning = keys.length > 0 ? join(keys, ", ") : sql`1`;
  const insert = sql`insert into ${qualifiedIdentifier(table)}${into} ${rows} returning ${returning}`;
  return compile(
    sql`with ${WRITTEN_CTE} as (${insert}) select ${saveRows(saved)}, ${guardColumn(plan)} from ${WRITTEN_CTE}`,
  );
}

export function savedColumn(table: QualifiedName, { name }: SavedRows["columns"][number], index: number): Sql {
  return sql`${identifier(table.name, name)}::pg_catalog.text as ${keyName(index)}`;
}

/** Keeps the saved columns of all rows, in their order. */
export function saveRows({ setting, columns }: SavedRows, order: Sql = NOTHING): Sql {
  const names = columns.map((_, index) => keyName(index));
  const rows = sql`pg_catalog.json_agg(pg_catalog.json_build_array(${join(names, ", ")})${order})`;
  return sql`pg_catalog.length(pg_catalog.set_config(${literal(setting)}, coalesce(${rows}, '[]')::pg_catalog.text, true))`;
}

/** The rows that a statement has saved, by the alias of the link. */
export function linkedRows({ saved, alias }: RowLink): Sql {
  return sql`${savedFromItem(saved)} as ${identifier(alias)}`;
}

/** The columns of saved rows: their number, and the values. */
export const SAVED_NAMES = { row: "row", key: keyText } as const;

/** The rows that the statements of a nested insert have saved, read from the table or as they were inserted. */
export function buildSavedRows(change: ChangePlan & { kind: "nested insert" }, result: KeptColumns): Sql {
  const { table, saved, read, columns } = change;
  const alias = table.name === "saved" ? "saved_rows" : "saved";
  const from = sql`${savedFromItem(saved)} as ${identifier(alias)}`;
  const inOrder = sql`order by ${identifier(alias, "row")}`;
  const savedValue = (name: string) => identifier(alias, keyText(indexOfSaved(saved, name)));
  if (read === "as saved") {
    const values = columns.map((name) => sql`${savedValue(name)} as ${identifier(name)}`);
    return sql`select ${values.length > 0 ? join(values, ", ") : sql`1`} from ${from} ${inOrder}`;
  }
  const isSaved = columns.map((name) => {
    const { operatorSchema } = saved.columns[indexOfSaved(saved, name)]!;
    return sql`${identifier(table.name, name)} ${operatorIn(operatorSchema, EQUALS)} ${savedValue(name)}`;
  });
  const joined = sql`${qualifiedIdentifier(table)} join ${from} on ${join(isSaved, " and ")}`;
  return sql`select ${keptColumns(change, result)} from ${joined} ${inOrder}`;
}

/** Fails if a trigger has dropped rows, which would shift all following keys, or if a key is missing, which would link to no row. */
function guardColumn({ saved, required }: NestedInsertPlan): Sql {
  const sent = sql`pg_catalog.json_array_length(${PAYLOAD_JSON})`;
  const dropped = sql`when pg_catalog.count(*) <> ${sent} then pg_catalog.current_setting('planner.nested dropped ' || pg_catalog.count(*)::pg_catalog.text)`;
  const missing = saved.columns.flatMap(({ name }, index) => {
    if (!required.includes(name)) return [];
    const problem = sql`'planner.nested null ' || pg_catalog.count(${keyName(index)})::pg_catalog.text || ${literal(` ${index}`)}`;
    return [
      sql`when pg_catalog.count(${keyName(index)}) <> pg_catalog.count(*) then pg_catalog.current_setting(${problem})`,
    ];
  });
  return sql`case ${join([dropped, ...missing], " ")} end`;
}

/** The rows that a statement has saved: `key_1` and so on, and `row`. */
function savedFromItem({ setting, columns }: SavedRows): Sql {
  const values = columns.map(
    ({ sqlType }, index) => sql`("each"."json"->>${integer(index)})::${catalogSql(sqlType)} as ${keyName(index)}, `,
  );
  const each = sql`pg_catalog.json_array_elements(pg_catalog.current_setting(${literal(setting)})::pg_catalog.json) with ordinality as "each"("json", "row")`;
  return sql`(select ${join(values, "")}"each"."row" from ${each})`;
}

function keyName(index: number): Sql {
  return identifier(keyText(index));
}

function keyText(index: number): string {
  return `key_${index + 1}`;
}

function indexOfSaved({ columns }: SavedRows, name: string): number {
  return columns.findIndex((column) => column.name === name);
}

/** The key of the linked row, with which all links and the client's own value must agree; if there is no link, the client's value. */
function columnValue(column: NestedColumn, index: number, { records, ordinal }: NestedInsertPlan): Sql {
  const { sources, confirmed, isGiven, missingValue, sqlType, name } = column;
  const own = isGiven ? identifier(records.alias, name) : missingValue ? buildDefault(missingValue) : sql`null`;
  if (sources.length === 0) return own;
  const type = catalogSql(sqlType);
  const values = sources.map((source) => linkedValue(source, type));
  const all = confirmed === null ? values : [...values, identifier(records.alias, confirmed)];
  const row = sql`'planner.nested differs ' || ${identifier(records.alias, ordinal)}::pg_catalog.text || ${literal(` ${index}`)}`;
  const checks = all.flatMap((value, at) =>
    all.slice(at + 1).map((other) => {
      const isDifferent = sql`not (${value} ${operatorIn(column.operatorSchema, EQUALS)} ${other})`;
      return sql`when ${isDifferent} then pg_catalog.current_setting(${row})::${type}`;
    }),
  );
  const always = sources.findIndex(({ isOptional }) => !isOptional);
  if (always >= 0 && checks.length === 0) return values[always]!;
  const linked = sources.map(
    ({ link }, at) => sql`when ${identifier(records.alias, link.pointer)} is not null then ${values[at]!}`,
  );
  return sql`case ${join([...checks, ...linked], " ")} else ${own} end`;
}

function linkedValue({ link, column }: LinkedValue, type: Sql): Sql {
  return sql`${identifier(link.alias, keyText(indexOfSaved(link.saved, column)))}::${type}`;
}

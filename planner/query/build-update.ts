import type { UpdateOperator } from "../intent/intent.ts";
import type { AssignmentPlan, ChangePlan, ColumnOperationPlan, KeptColumns, OperandSubject } from "../plan/plan.ts";
import { buildConjunction, RESULT_CTE } from "./build-select.ts";
import { keptColumns, recordsFromItem, returning, writeWhereClause } from "./build-write.ts";
import { catalogSql, identifier, join, literal, operatorIn, qualifiedIdentifier, type Sql, sql } from "./sql.ts";

type Update = ChangePlan & { readonly kind: "update" };
type KeyedUpdate = Update & { readonly key: NonNullable<Update["key"]> };

const UPDATED_CTE = sql`"updated"`;
const EQUALS = sql`=`;

/** The CTEs of an UPDATE; the last one has the kept columns of the changed rows. */
export function buildUpdate(change: Update, result: KeptColumns): Sql[] {
  return isByKey(change) ? updateByKey(change, result) : [sql`${RESULT_CTE} as (${updateAlike(change, result)})`];
}

export function isByKey(change: Update): change is KeyedUpdate {
  return change.key !== null;
}

function updateAlike(change: Update, result: KeptColumns): Sql {
  const { table, records, findsUnchanged, where } = change;
  // SQL has no UPDATE without columns. Locking rows requires the same privileges and policies.
  if (records.columns.length === 0) {
    const from = sql`select ${keptColumns(change, result)} from ${qualifiedIdentifier(table)}`;
    return findsUnchanged ? sql`${from}${writeWhereClause(where)} for no key update` : sql`${from} where false`;
  }
  const from = sql`from ${recordsFromItem(records)}`;
  return sql`update ${qualifiedIdentifier(table)} set ${setList(change)} ${from}${writeWhereClause(where)}${returning(change, result)}`;
}

/** The changed rows have the order of the records. */
function updateByKey(change: KeyedUpdate, result: KeptColumns): Sql[] {
  const { table, records, where, key } = change;
  const payload = identifier(records.alias);
  const numbered = sql`select pg_catalog.row_number() over () as ${identifier(key.position)}, ${payload}.* from ${recordsFromItem(records)}`;
  const isOfRecord = key.columns.map(({ name, operatorSchema }) => {
    return sql`${identifier(table.name, name)} ${operatorIn(operatorSchema, EQUALS)} ${identifier(records.alias, name)}`;
  });
  const conditions = [...isOfRecord, ...(where.length > 0 ? [buildConjunction(where)] : [])];
  const update = sql`update ${qualifiedIdentifier(table)} set ${setList(change)} from ${payload} where ${join(conditions, " and ")}`;
  const rows = sql`${payload} as materialized (${numbered})`;
  const { wholeRow, names } = result;
  if (!wholeRow && names.length === 0) return [rows, sql`${RESULT_CTE} as (${update}${returning(change, result)})`];
  const position = identifier(records.alias, key.position);
  const returned = [...(wholeRow ? key.tableColumns : []), ...names].map((name) => identifier(name));
  return [
    rows,
    sql`${UPDATED_CTE} as (${update}${returning(change, result)}, ${position})`,
    sql`${RESULT_CTE} as (select ${join(returned, ", ")} from ${UPDATED_CTE} order by ${identifier(key.position)})`,
  ];
}

/** Fails if a record has no key, or the key of an earlier one: Postgres would apply any of them. */
export function keyGuards({ records, key }: KeyedUpdate): Sql[] {
  const from = sql`from ${identifier(records.alias)}`;
  const position = identifier(key.position);
  const names = key.columns.map(({ name }) => identifier(name));
  const isNull = join(
    names.map((name) => sql`${name} is null`),
    " or ",
  );
  const missing = sql`select pg_catalog.min(${position}) as "n" ${from} where ${isNull}`;
  const repeated = sql`select pg_catalog.max(${position}) as "n" ${from} group by ${join(names, ", ")} having pg_catalog.count(*) operator(pg_catalog.>) 1 limit 1`;
  return [failAt("PGRST197", missing), failAt("PGRST198", repeated)];
}

/** Postgres repeats the name of the unknown setting in its message (see `guardColumn`). */
function failAt(code: string, positions: Sql): Sql {
  const setting = sql`pg_catalog.current_setting(${literal(`${code} `)} || "n"::pg_catalog.text)`;
  return sql`(select ${setting} from (${positions}) "_" where "n" is not null)`;
}

function setList({ assignments, table, records }: Update): Sql {
  const newValueOf = (assignment: AssignmentPlan) => newValue(assignment, table.name, records.alias);
  const set = assignments.map((each) => sql`${identifier(each.column)} = ${newValueOf(each)}`);
  return join(set, ", ");
}

function newValue(
  { column, sqlType, operations, operatorColumn }: AssignmentPlan,
  table: string,
  records: string,
): Sql {
  const given = identifier(records, column);
  if (operations.length === 0) return given;
  const type = catalogSql(sqlType);
  const old = sql`${identifier(table, column)}::${type}`;
  const values = operations.map((operation) =>
    applyOperator(operation, old, identifier(records, operation.operand), type),
  );
  if (operatorColumn === null) return values[0]!;
  const cases = operations.map(({ operator }, index) => {
    return sql`when ${literal(operator)} then (${values[index]!})::${type}`;
  });
  return sql`case ${identifier(records, operatorColumn)} ${join(cases, " ")} else ${given}::${type} end`;
}

const ADD = sql`operator(pg_catalog.+)`;
const MULTIPLY = sql`operator(pg_catalog.*)`;
const CONCATENATE = sql`operator(pg_catalog.||)`;
const WITHOUT_KEYS = sql`operator(pg_catalog.-)`;

/** Applies an operator. Null counts as 0, as an empty list or as an empty object, unless there is nothing to change. */
function applyOperator({ operator, subject }: ColumnOperationPlan, old: Sql, operand: Sql, type: Sql): Sql {
  switch (operator) {
    case "$inc":
      return subject === "time" ? sql`${old} ${ADD} ${operand}` : sql`coalesce(${old}, 0::${type}) ${ADD} ${operand}`;
    case "$mul":
      return sql`${old} ${MULTIPLY} ${operand}`;
    case "$min":
      return sql`least(${old}, ${operand})`;
    case "$max":
      return sql`greatest(${old}, ${operand})`;
    case "$remove":
      return sql`pg_catalog.array_remove(${old}, ${operand})`;
    default:
      return subject === "list"
        ? changeList(operator, old, operand)
        : changeJson(operator, old, operand, subject, type);
  }
}

function changeList(operator: UpdateOperator, old: Sql, operand: Sql): Sql {
  const parts = operator === "$append" ? [old, operand] : [operand, old];
  return sql`pg_catalog.array_cat(${join(parts, ", ")})`;
}

function changeJson(operator: UpdateOperator, old: Sql, operand: Sql, subject: OperandSubject, type: Sql): Sql {
  const value = subject === "json" ? sql`(${old})::pg_catalog.jsonb` : old;
  const orEmpty = (empty: string) => sql`coalesce(${value}, ${literal(empty)}::pg_catalog.jsonb)`;
  const changed = () => {
    switch (operator) {
      case "$unset":
        return sql`${value} ${WITHOUT_KEYS} ${operand}`;
      case "$merge":
        return sql`${orEmpty("{}")} ${CONCATENATE} ${operand}`;
      case "$prepend":
        return sql`${operand} ${CONCATENATE} ${orEmpty("[]")}`;
      default:
        return sql`${orEmpty("[]")} ${CONCATENATE} ${operand}`;
    }
  };
  return subject === "json" ? sql`(${changed()})::${type}` : changed();
}

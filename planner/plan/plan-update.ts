import {
  baseTypeOf,
  type Catalog,
  type CatalogColumn,
  type CatalogTable,
  comparabilityOf,
  type DataType,
  operatorSchemaOf,
} from "#catalog";
import { ApiError } from "#runtime";
import {
  type ColumnOperators,
  operandName,
  operatorName,
  UPDATE_OPERATORS,
  type UpdateIntent,
  type UpdateOperator,
} from "../intent/intent.ts";
import type { AssignmentPlan, ColumnOperationPlan, OperandSubject, RecordColumn, UpdatePlan } from "./plan.ts";
import {
  columnNotFound,
  makeUnusedNames,
  mayLack,
  planMissingValue,
  planRecordColumn,
  toChangeRecordsPlan,
  unboundedType,
} from "./records.ts";

type UpdateContext = {
  readonly catalog: Catalog;
  readonly role: string;
  /** True if no other condition limits the rows: then an update without a key is refused. */
  readonly requiresKey: boolean;
};

type ColumnUpdate = { readonly records: readonly RecordColumn[]; readonly assignment: AssignmentPlan };

/** Null if the update would change every row and is not allowed to. */
export function planUpdate(intent: UpdateIntent, table: CatalogTable, context: UpdateContext): UpdatePlan | null {
  const { payload, operators = [], missingAsDefault, returnsUnchangedRows } = intent;
  for (const name of payload.columns) if (!table.columns.has(name)) throw columnNotFound(name, table);
  const key = findKey(intent, table, context);
  if (key === null && context.requiresKey && payload.columns.length > 0) return null;
  const columns = payload.columns.map((name): ColumnUpdate => {
    const column = table.columns.get(name)!;
    const isKey = key?.includes(name) ?? false;
    const used = operators.find((each) => each.column === name);
    if (isKey && used) throw operatorNotPossible(`The column '${name}' is the key, so it keeps its value.`);
    const usesDefault = missingAsDefault && !isKey && mayLack(payload, name);
    const missingValue = usesDefault ? planMissingValue(column, table) : null;
    const given = planRecordColumn(column, missingValue, context.catalog);
    return used
      ? planOperators(used, column, given, table, context.catalog)
      : {
          records: [given],
          assignment: { column: name, sqlType: column.sqlType, operations: [], operatorColumn: null },
        };
  });
  const records = columns.flatMap((column) => column.records);
  return {
    records: toChangeRecordsPlan(table, payload, records),
    assignments: columns.map(({ assignment }) => assignment).filter(({ column }) => !key?.includes(column)),
    key: key && {
      columns: key.map((name) => ({ name, operatorSchema: operatorSchemaOf(table.columns.get(name)!.type, context) })),
      position: makeUnusedNames(table)("position"),
      tableColumns: [...table.columns.keys()],
    },
    findsUnchanged: returnsUnchangedRows === true,
  };
}

/** The requested key, or the primary key if the update would otherwise be refused. */
function findKey(
  { payload: { columns, isArray }, key }: UpdateIntent,
  table: CatalogTable,
  { requiresKey }: UpdateContext,
): readonly string[] | null {
  if (!isArray || columns.length === 0) return null;
  if (key === undefined) {
    const { primaryKey } = table;
    const areByKey = primaryKey.length > 0 && primaryKey.every((name) => columns.includes(name));
    return requiresKey && areByKey && columns.length > primaryKey.length ? primaryKey : null;
  }
  for (const name of key) {
    if (!table.columns.has(name)) throw columnNotFound(name, table);
    if (columns.includes(name)) continue;
    throw new ApiError("invalid", "PGRST197", `The rows have no column '${name}', which is their key`, {
      hint: "Send it in each row, and list it in `columns` if you use that.",
    });
  }
  if (columns.some((name) => !key.includes(name))) return key;
  throw new ApiError("invalid", "PGRST102", "The rows have no column besides their key", {
    hint: "Send the columns to change.",
  });
}

function planOperators(
  { column: name, operators, isUniform }: ColumnOperators,
  column: CatalogColumn,
  given: RecordColumn,
  table: CatalogTable,
  catalog: Catalog,
): ColumnUpdate {
  const subject = subjectOf(column.baseType);
  const operations = operators.map((operator): ColumnOperationPlan => {
    if (!SUBJECTS[operator].includes(subject)) {
      throw operatorNotPossible(`'${operator}' cannot be applied to '${name}', whose type is ${column.sqlType}.`);
    }
    return { operator, operand: operandName(name, operator), subject };
  });
  const operands = operations.map(({ operator, operand }) =>
    planOperand(operand, operandTypeOf(operator, column, subject), column, catalog),
  );
  const operatorColumn = isUniform ? null : operatorName(name);
  const selector = operatorColumn === null ? [] : [planOperand(operatorColumn, "text", column, catalog)];
  const records = [...(isUniform ? [] : [given]), ...selector, ...operands];
  // Values for a column with such a name, which is unlikely, would be taken for operands.
  const taken = records.find((record) => record !== given && table.columns.has(record.name));
  if (taken) throw operatorNotPossible(`The table has a column '${taken.name}'.`);
  const sqlType = unboundedType({ ...column, type: column.baseType });
  return { records, assignment: { column: name, sqlType, operations, operatorColumn } };
}

function planOperand(name: string, sqlType: string, column: CatalogColumn, catalog: Catalog): RecordColumn {
  return { ...planRecordColumn({ ...column, sqlType }, null, catalog), name, element: null };
}

const SUBJECTS: Readonly<Record<UpdateOperator, readonly OperandSubject[]>> = {
  $inc: ["number", "time"],
  $mul: ["number"],
  $min: ["number", "time", "value"],
  $max: ["number", "time", "value"],
  $append: ["list", "json", "jsonb"],
  $prepend: ["list", "json", "jsonb"],
  $remove: ["list"],
  $merge: ["json", "jsonb"],
  $unset: ["json", "jsonb"],
};

const NUMBERS: ReadonlySet<string> = new Set(["int2", "int4", "int8", "numeric", "float4", "float8"]);
const TIMES: ReadonlySet<string> = new Set(["timestamp", "timestamptz", "interval", "time", "timetz", "date"]);

function subjectOf(type: DataType): OperandSubject {
  if (type.kind === "array") return "list";
  if (type.schema !== "pg_catalog") return "value";
  if (NUMBERS.has(type.name)) return "number";
  if (TIMES.has(type.name)) return "time";
  return type.name === "json" || type.name === "jsonb" ? type.name : "value";
}

/** The operators that columns of a type take. `$min` and `$max` also require an order, and `$remove` an equality. */
export function operatorsOf(type: DataType): {
  readonly subject: OperandSubject;
  readonly operators: readonly UpdateOperator[];
} {
  const subject = subjectOf(type);
  const comparability = comparabilityOf(type);
  const isComparable = (operator: UpdateOperator) => {
    if (operator === "$min" || operator === "$max") return comparability === "order";
    return operator !== "$remove" || comparability !== "none";
  };
  const operators = UPDATE_OPERATORS.filter((each) => SUBJECTS[each].includes(subject) && isComparable(each));
  return { subject, operators };
}

function operandTypeOf(
  operator: UpdateOperator,
  { baseType, ...column }: CatalogColumn,
  subject: OperandSubject,
): string {
  const own = unboundedType({ ...column, baseType, type: baseType });
  switch (operator) {
    case "$inc":
      return subject === "time" ? "interval" : own;
    case "$mul":
      return baseType.name.startsWith("float") ? "double precision" : "numeric";
    case "$remove":
      return baseType.kind === "array" ? baseTypeOf(baseType.element).sqlName : own;
    case "$unset":
      return "text[]";
    case "$append":
    case "$prepend":
    case "$merge":
      return subject === "list" ? own : "jsonb";
    default:
      return own;
  }
}

function operatorNotPossible(details: string): ApiError {
  return new ApiError("invalid", "PGRST199", "The operator is not possible here", { details });
}

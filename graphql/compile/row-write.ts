import { TYPES } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import {
  type FieldNode,
  type GraphQLArgument,
  GraphQLBoolean,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNullableType,
  isInputObjectType,
} from "grafast/graphql";
import {
  type Codec,
  emptyInputError,
  type FieldSource,
  hasNestedFields,
  isInsertedRow,
  isWrittenRow,
  keepRow,
  keptRow,
  keptRows,
  type PgRelation,
  type PgTable,
  type RowsWrite,
  readRowInput,
  sourceOf,
  validIdOf,
  wholeRow,
  writtenColumnOf,
  writtenKeys,
} from "#plugins";
import type { Stepwise } from "#runtime/concurrency";
import {
  aliasOf,
  jsonArrayOf,
  keyConditions,
  mayBeNullRow,
  type RowsSelect,
  rowsOf,
  selectRows,
} from "./collection-sql.ts";
import { NotCompiled } from "./not-compiled.ts";
import { argumentValue, type CoercedVariables, type InputValue, parameterSql } from "./operation-values.ts";
import type { Field } from "./selection-reader.ts";
import { REFUSE_SEVERAL_ROWS, textLiteral } from "./spell-value.ts";

/** How an operation writes a row. */
export type RowWrite = {
  /** The statement that writes, where the text of `data` needs a statement of its own. */
  readonly before: SQL | null;
  /** The statement that returns the text of `data`, or no row when none was written. */
  readonly statementOf: (data: SQL) => SQL;
  /** The rows that the planner's statements write before. Null: the statements write by themselves. */
  readonly rows: ((variables: CoercedVariables) => RowsWrite) | null;
  /** Null: the operation has a result without a row, too. */
  readonly noRowError: (() => Error) | null;
};

type CompiledWrite = { readonly write: RowWrite; readonly value: SQL };

type WriteSource = Extract<FieldSource, { readonly kind: "write" }>;
type Values = ReadonlyMap<string, InputValue>;

type RowWriteOptions = {
  readonly source: WriteSource;
  readonly field: Field;
  readonly values: Values;
  readonly schema: GraphQLSchema;
  /** The selected fields of the row. */
  readonly selected: () => { readonly type: GraphQLObjectType; readonly fields: Iterable<readonly FieldNode[]> };
  /** The text of the row's selected fields. */
  readonly item: (row: SQL) => Stepwise<SQL>;
  /** True if the field runs by itself, for example because its statement has failed. */
  readonly isAlone: boolean;
};

/**
 * Writes and returns columns of the row in one statement. Related rows are read by a statement after it, which sees the effects of
 * triggers; the row itself has the values that the first one returned.
 */
export function* compileRowWrite(options: RowWriteOptions): Stepwise<CompiledWrite> {
  const { source, field, values, selected, item, isAlone } = options;
  const { table, verb } = source;
  if (verb === "create" && hasNestedFields(inputOf(field).type)) return yield* compileNestedInsert(options);
  const target = aliasOf(table);
  const statement = writeSql(source, field, values, target);
  if (verb === "delete") {
    const deleted = sql.identifier(Symbol("deleted"));
    const statementOf = (data: SQL) => sql`with ${deleted} as (${statement} returning 1) select ${data}`;
    return {
      write: { before: null, statementOf, rows: null, noRowError: null },
      value: sql`(exists (select from ${deleted}))::pg_catalog.text`,
    };
  }
  const { noRowError } = source;
  const isDone = getNullableType(field.type) === GraphQLBoolean;
  const { columns, readsTables, callsFunctions } = isDone ? NOTHING_NEEDED : neededOf(selected());
  if (!readsTables) {
    const value = isDone ? textLiteral("true") : yield* item(target);
    // A view with rules may not return rows: the statement that returns the row has then failed, and nothing needs the row.
    if (isAlone && columns.length === 0 && mayBeNullRow(table)) {
      const read = (data: SQL) => sql`select ${data}`;
      return { write: { before: statement, statementOf: read, rows: null, noRowError }, value };
    }
    const statementOf = (data: SQL) => sql`${statement} returning ${data}`;
    return { write: { before: null, statementOf, rows: null, noRowError }, value };
  }
  const row = aliasOf(table);
  const kept = columns.map((name) => ({ name, codec: codecOf(table, name) }));
  const rows = callsFunctions ? keptRows(table) : keptRow(kept);
  const texts = callsFunctions ? [wholeRow(target)] : columns.map((name) => sql`${target}.${sql.identifier(name)}`);
  const read = (data: SQL) => sql`select ${data} from ${rows} as ${row}`;
  return {
    write: { before: keepRow(statement, texts), statementOf: read, rows: null, noRowError },
    value: yield* item(row),
  };
}

/** The row is read as it is after all rows were inserted. */
function* compileNestedInsert({ source, field, values, schema, item }: RowWriteOptions): Stepwise<CompiledWrite> {
  const { table } = source;
  const row = aliasOf(table);
  const { type } = inputOf(field);
  const input = values.get("input")!;
  const statementOf = (data: SQL) => selectRows(rowsOf(table, row, isInsertedRow(table, row)), data);
  const rows = (variables: CoercedVariables): RowsWrite => {
    const value = argumentValue(input, variables);
    return { kind: "nested insert", row: readRowInput(schema, type, table, value as object) };
  };
  return {
    write: { before: null, statementOf, rows, noRowError: source.noRowError },
    value: yield* item(row),
  };
}

type RowsWriteOptions = Pick<RowWriteOptions, "field" | "values" | "schema"> & {
  readonly source: Extract<FieldSource, { readonly kind: "rows write" }>;
  readonly item: (row: SQL) => Stepwise<SQL>;
};

/** The written rows are read as they are afterwards. */
export function* compileRowsWrite({ source, field, values, schema, item }: RowsWriteOptions): Stepwise<CompiledWrite> {
  const { table, args, toWrite } = source;
  const row = aliasOf(table);
  const { type } = field.args[0]!;
  const rows = (variables: CoercedVariables): RowsWrite => {
    const given = args.map((name) => argumentValue(values.get(name)!, variables));
    return toWrite(schema, type, given);
  };
  const keys = writtenKeys();
  const query: RowsSelect = {
    ...rowsOf(table, row, isWrittenRow(keys, table, row)),
    from: sql`${keys.from} as ${keys.alias}${keys.names} cross join ${table.from as SQL}`,
    order: [{ fragment: keys.position, codec: TYPES.bigint, isNullable: false, direction: "ASC" }],
  };
  const statementOf = (data: SQL) => sql`select ${data}`;
  return {
    write: { before: null, statementOf, rows, noRowError: null },
    value: jsonArrayOf(query, yield* item(row)),
  };
}

function inputOf({ args }: Field): GraphQLArgument {
  return args.find(({ name }) => name === "input")!;
}

type NeededValues = {
  readonly columns: readonly string[];
  /** True if the fields read other rows, which is done after the write. */
  readonly readsTables: boolean;
  /** True if functions take the row. */
  readonly callsFunctions: boolean;
};

const NOTHING_NEEDED: NeededValues = { columns: [], readsTables: false, callsFunctions: false };

/** Finds the parts of the row that the fields need. */
function neededOf({ type, fields }: ReturnType<RowWriteOptions["selected"]>): NeededValues {
  const columns = new Set<string>();
  let [readsTables, callsFunctions] = [false, false];
  for (const [node] of fields) {
    const field = type.getFields()[node!.name.value];
    const source = field && sourceOf(field);
    if (!source) continue;
    if (readsOtherRows(source)) readsTables = true;
    if (source.kind === "call") callsFunctions = true;
    if (source.kind === "column" && !source.via) columns.add(source.column);
    if (source.kind === "own value") columns.add(source.key);
    for (const column of relationOf(source)?.localAttributes ?? []) columns.add(column);
  }
  return { columns: [...columns], readsTables, callsFunctions };
}

/** True for a field of a row whose value is not part of it. */
export function readsOtherRows(source: FieldSource): boolean {
  return source.kind === "call" || relationOf(source) !== null || isRowColumn(source);
}

function relationOf(source: FieldSource): PgRelation | null {
  switch (source.kind) {
    case "column":
      return source.via;
    case "related row":
      return source.path[0]!;
    case "rows":
      return source.relation;
    default:
      return null;
  }
}

/** True if the column has rows of a table, which have relations. */
export function isRowColumn(source: FieldSource): boolean {
  if (source.kind !== "column") return false;
  const { attributes, extensions } = source.codec.arrayOfCodec ?? source.codec;
  return Boolean(attributes) && extensions?.isTableLike !== false;
}

/** The statement without `returning`. */
function writeSql({ table, verb, key }: WriteSource, field: Field, values: Values, row: SQL): SQL {
  const from = table.from as SQL;
  const inputs = verb === "delete" ? [] : inputColumns(field, values);
  const columns = inputs.map(({ column }) => sql.identifier(column));
  if (verb === "create") {
    if (inputs.length === 0) return sql`insert into ${from} as ${row} default values`;
    const given = inputs.map(({ value }) => value);
    return sql`insert into ${from} as ${row} (${sql.join(columns, ", ")}) values (${sql.join(given, ", ")})`;
  }
  const where = sql.join([...keyConditions(table, key, values, row), ...isOnlyRow(table, key, values)], " and ");
  if (verb === "delete") return sql`delete from ${from} as ${row} where ${where}`;
  if (inputs.length === 0) throw emptyInputError();
  const assignments = inputs.map(({ value }, index) => sql`${columns[index]!} = ${value}`);
  return sql`update ${from} as ${row} set ${sql.join(assignments, ", ")} where ${where}`;
}

/** A condition that fails the statement if several rows have the key; none where a key is of one row. */
function isOnlyRow(table: PgTable, key: WriteSource["key"], values: Values): SQL[] {
  if (!table.extensions?.mayRepeatKeys) return [];
  const row = aliasOf(table);
  const count = sql`pg_catalog.count(*) operator(pg_catalog.>) 1`;
  const check = sql`case when ${count} then ${REFUSE_SEVERAL_ROWS} operator(pg_catalog.=) '' else true end`;
  return [sql`(${selectRows(rowsOf(table, row, keyConditions(table, key, values, row)), check)})`];
}

/** Absent fields are left to the column's default, or keep their values. */
function inputColumns(field: Field, values: Values): { column: string; value: SQL }[] {
  const type = getNullableType(inputOf(field).type);
  const input = values.get("input")!;
  if (!isInputObjectType(type) || input.kind !== "object") throw new NotCompiled("argument", "input");
  return Object.values(type.getFields()).flatMap((inputField) => {
    const value = input.fields.get(inputField.name)!;
    if (value.kind === "absent") return [];
    const { column, codec } = writtenColumnOf(inputField)!;
    return [{ column, value: parameterSql(value, codec, (given) => validIdOf(given, codec)) }];
  });
}

function codecOf({ codec }: PgTable, column: string): Codec {
  return codec.attributes[column]!.codec;
}

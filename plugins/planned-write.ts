import { type PgCodec, type PgSelectSingleStep, type PgSelectStep, pgSelect, TYPES } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import { type ExecutionDetails, type GrafastResultsList, Step } from "grafast";
import type { GraphQLInputType, GraphQLSchema } from "grafast/graphql";
import { RESULT_SETTING } from "./function-call.ts";
import { type RowInput, readRowInput } from "./nested-inputs.ts";
import { equals } from "./operators.ts";
import { keyOf, type PgTable } from "./table.ts";

/** Rows that statements of the planner write. */
export type RowsWrite =
  /** One row with related rows. */
  | { readonly kind: "nested insert"; readonly row: RowInput }
  /** Each row has the key of the one that it changes. */
  | { readonly kind: "update"; readonly table: PgTable; readonly rows: readonly RowInput[] }
  | {
      readonly kind: "upsert";
      readonly table: PgTable;
      readonly rows: readonly RowInput[];
      /** The columns whose values an existing row has. */
      readonly key: readonly string[];
      readonly resolution: "merge" | "ignore";
    };

/** A planned write. The statements for the rows are sent before the statement that has it as one of its values. */
export class PlannedWrite {
  static #count = 0;
  readonly #number = ++PlannedWrite.#count;
  readonly rows: RowsWrite;
  /** The value that replaces the write in that statement. */
  readonly result = RESULT_SETTING;

  constructor(rows: RowsWrite) {
    this.rows = rows;
  }

  /** Plans run equal statements with equal values once: two writes are never equal. */
  toJSON(): number {
    return this.#number;
  }
}

/** The conditions that the row is the inserted one. The setting has its key: a list of texts in JSON. */
export function isInsertedRow(table: PgTable, row: SQL, setting: SQL = sql.literal(RESULT_SETTING)): SQL[] {
  return keyOf(table)!.map((column, index) => {
    const { codec } = table.codec.attributes[column]!;
    const value = sql`(pg_catalog.current_setting(${setting})::pg_catalog.json operator(pg_catalog.->>) ${sql.literal(index)})::${codec.sqlType}`;
    return equals(codec, sql`${row}.${sql.identifier(column)}`, value);
  });
}

/** The keys of written rows, which are in the setting as a list of objects in JSON. */
export type WrittenKeys = {
  readonly from: SQL;
  readonly alias: SQL;
  readonly names: SQL;
  /** The position of a table's row among the written rows. */
  readonly position: SQL;
};

export function writtenKeys(setting: SQL = sql.literal(RESULT_SETTING)): WrittenKeys {
  const alias = sql.identifier(Symbol("written"));
  return {
    from: sql`pg_catalog.json_array_elements(pg_catalog.current_setting(${setting})::pg_catalog.json) with ordinality`,
    alias,
    names: sql`("key", "position")`,
    position: sql`${alias}."position"`,
  };
}

export function isWrittenRow({ alias }: WrittenKeys, table: PgTable, row: SQL): SQL[] {
  return keyOf(table)!.map((column) => {
    const { codec } = table.codec.attributes[column]!;
    const value = sql`(${alias}."key" operator(pg_catalog.->>) ${sql.literal(column)})::${codec.sqlType}`;
    return equals(codec, sql`${row}.${sql.identifier(column)}`, value);
  });
}

/** Inserts the rows of the input, and reads the row that contains the others. */
export function insertNestedRow(
  table: PgTable,
  $input: Step,
  inputType: GraphQLInputType,
): PgSelectSingleStep<PgTable> {
  const toWrite: ToRowsWrite = (schema, [input]) => {
    return { kind: "nested insert", row: readRowInput(schema, inputType, table, input as object) };
  };
  const $rows = pgSelect({ resource: table, identifiers: [], hasImplicitOrder: false });
  const setting = $rows.placeholder(new PlannedWriteStep(toWrite, [$input]), PLANNED_WRITE_CODEC);
  for (const condition of isInsertedRow(table, $rows.alias, setting)) $rows.where(condition);
  return $rows.single() as PgSelectSingleStep<PgTable>;
}

/** Writes the rows, and reads those that were written, in their order. */
export function writeAndReadRows(
  table: PgTable,
  $values: readonly Step[],
  toWrite: ToRowsWrite,
): PgSelectStep<PgTable> {
  const $rows = pgSelect({ resource: table, identifiers: [], hasImplicitOrder: false }) as PgSelectStep<PgTable>;
  const keys = writtenKeys($rows.placeholder(new PlannedWriteStep(toWrite, $values), PLANNED_WRITE_CODEC));
  const conditions = isWrittenRow(keys, table, $rows.alias);
  $rows.join({ type: "inner", from: keys.from, alias: keys.alias, attributeNames: keys.names, conditions });
  $rows.orderBy({ fragment: keys.position, codec: TYPES.bigint, direction: "ASC" });
  return $rows;
}

/** Passes the rows unchanged to the client that sends statements. */
const PLANNED_WRITE_CODEC: PgCodec = { ...TYPES.text, toPg: (write) => write };

/** The rows that the values of arguments describe. */
export type ToRowsWrite = (schema: GraphQLSchema, values: readonly unknown[]) => RowsWrite;

class PlannedWriteStep extends Step<PlannedWrite> {
  static override $$export = { moduleName: import.meta.filename, exportName: "PlannedWriteStep" };
  readonly #toWrite: ToRowsWrite;

  constructor(toWrite: ToRowsWrite, $values: readonly Step[]) {
    super();
    this.hasSideEffects = true;
    // Grafast may move steps that are synchronous and safe; if this is unset, it warns in development.
    this.isSyncAndSafe = false;
    this.#toWrite = toWrite;
    for (const $value of $values) this.addDependency($value);
  }

  override execute({ indexMap, values }: ExecutionDetails): GrafastResultsList<PlannedWrite> {
    const schema = this.operationPlan.schema as GraphQLSchema;
    return indexMap((index) => {
      const given = values.map((value) => value!.at(index));
      return new PlannedWrite(this.#toWrite(schema, given));
    });
  }
}

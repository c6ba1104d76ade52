import { type PgCodec, type PgSelectSingleStep, type PgSelectStep, pgSelect, TYPES } from "@dataplan/pg";
import { sql } from "@dataplan/pg/pg-sql2";
import { type ExecutionDetails, type GrafastResultsList, Step } from "grafast";
import type { GraphQLInputType, GraphQLSchema } from "grafast/graphql";
import { RESULT_SETTING } from "../../../plugins/function-call.ts";
import { readRowInput } from "../../../plugins/nested-inputs.ts";
import { isInsertedRow, isWrittenRow, type RowsWrite, writtenKeys } from "../../../plugins/planned-write.ts";
import type { PgTable } from "../../../plugins/table.ts";

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

/** Inserts the rows of the input, and reads the row that contains the others. */
export function insertNestedRow(
  table: PgTable,
  $input: Step,
  inputType: GraphQLInputType,
): PgSelectSingleStep<PgTable> {
  const toWrite: ToRowsWrite = (schema, [input]) => {
    return { kind: "nested insert", row: readRowInput(schema, inputType, table, input as object) };
  };
  const $rows = pgSelect({ resource: table, identifiers: [], hasImplicitOrder: false }) as PgSelectStep<PgTable>;
  writeBefore($rows, new PlannedWriteStep(toWrite, [$input]));
  for (const condition of isInsertedRow(table, $rows.alias)) $rows.where(condition);
  return $rows.single() as PgSelectSingleStep<PgTable>;
}

/** Writes the rows, and reads those that were written, in their order. */
export function writeAndReadRows(
  table: PgTable,
  $values: readonly Step[],
  toWrite: ToRowsWrite,
): PgSelectStep<PgTable> {
  const $rows = pgSelect({ resource: table, identifiers: [], hasImplicitOrder: false }) as PgSelectStep<PgTable>;
  writeBefore($rows, new PlannedWriteStep(toWrite, $values));
  const keys = writtenKeys();
  const conditions = isWrittenRow(keys, table, $rows.alias);
  $rows.join({ type: "inner", from: keys.from, alias: keys.alias, attributeNames: keys.names, conditions });
  $rows.orderBy({ fragment: keys.position, codec: TYPES.bigint, direction: "ASC" });
  return $rows;
}

/** Makes the write one of the values of the statement. The value that replaces it is never null. */
function writeBefore($rows: PgSelectStep<PgTable>, $write: PlannedWriteStep): void {
  $rows.where(sql`${$rows.placeholder($write, PLANNED_WRITE_CODEC)} is not null`);
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

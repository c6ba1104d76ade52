import { type PgCodec, type PgSelectSingleStep, pgSelect, TYPES } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import { type ExecutionDetails, type GrafastResultsList, Step } from "grafast";
import type { GraphQLInputType, GraphQLSchema } from "grafast/graphql";
import { RESULT_SETTING } from "./function-call.ts";
import { type RowInput, readRowInput } from "./nested-inputs.ts";
import { equals } from "./operators.ts";
import { keyOf, type PgTable } from "./table.ts";

/** A row to insert with related rows. The statements for that are sent before the one that has it among its values. */
export class RowInsertion {
  static #count = 0;
  readonly #number = ++RowInsertion.#count;
  readonly row: RowInput;
  /** The value that replaces it in that statement. */
  readonly result = RESULT_SETTING;

  constructor(row: RowInput) {
    this.row = row;
  }

  /** Plans run equal statements with equal values once: two insertions are never equal. */
  toJSON(): number {
    return this.#number;
  }
}

/** The conditions that the row is the inserted one, whose key the setting has: a list of texts in JSON. */
export function isInsertedRow(table: PgTable, row: SQL, setting: SQL = sql.literal(RESULT_SETTING)): SQL[] {
  return keyOf(table)!.map((column, index) => {
    const { codec } = table.codec.attributes[column]!;
    const value = sql`(pg_catalog.current_setting(${setting})::pg_catalog.json operator(pg_catalog.->>) ${sql.literal(index)})::${codec.sqlType}`;
    return equals(codec, sql`${row}.${sql.identifier(column)}`, value);
  });
}

/** Inserts the rows of the input, and reads the row that contains the others. */
export function insertNestedRow(
  table: PgTable,
  $input: Step,
  inputType: GraphQLInputType,
): PgSelectSingleStep<PgTable> {
  const $insert = new NestedInsertStep(table, $input, inputType);
  const $rows = pgSelect({ resource: table, identifiers: [], hasImplicitOrder: false });
  const setting = $rows.placeholder($insert, NESTED_INSERT_CODEC);
  for (const condition of isInsertedRow(table, $rows.alias, setting)) $rows.where(condition);
  return $rows.single() as PgSelectSingleStep<PgTable>;
}

/** Passes the rows unchanged to the client that sends statements. */
const NESTED_INSERT_CODEC: PgCodec = { ...TYPES.text, toPg: (insert) => insert };

class NestedInsertStep extends Step<RowInsertion> {
  static override $$export = { moduleName: import.meta.filename, exportName: "NestedInsertStep" };
  readonly #table: PgTable;
  readonly #inputType: GraphQLInputType;

  constructor(table: PgTable, $input: Step, inputType: GraphQLInputType) {
    super();
    this.hasSideEffects = true;
    // Grafast may move steps that are; left unset, it warns in development.
    this.isSyncAndSafe = false;
    this.#table = table;
    this.#inputType = inputType;
    this.addDependency($input);
  }

  override execute({ indexMap, values: [inputs] }: ExecutionDetails<[object]>): GrafastResultsList<RowInsertion> {
    const schema = this.operationPlan.schema as GraphQLSchema;
    return indexMap((index) => {
      return new RowInsertion(readRowInput(schema, this.#inputType, this.#table, inputs!.at(index)));
    });
  }
}

import {
  type PgInsertSingleQueryBuilder,
  PgInsertSingleStep,
  type PgUpdateSingleQueryBuilder,
  PgUpdateSingleStep,
  sideEffectWithPgClient,
  sqlValueWithCodec,
} from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import {
  bakedInputRuntime,
  type ExecutionDetails,
  type FieldArgs,
  type FieldPlanResolver,
  type InputObjectFieldApplyResolver,
  lambda,
  list,
  type SetterCapable,
  type Step,
} from "grafast";
import { GraphQLBoolean, getNullableType } from "grafast/graphql";
import type { FieldSource } from "../../../plugins/field-sources.ts";
import { validIdOf } from "../../../plugins/IdScalarPlugin.ts";
import { hasNestedFields } from "../../../plugins/nested-inputs.ts";
import { equals } from "../../../plugins/operators.ts";
import { emptyInputError } from "../../../plugins/TableMutationsPlugin.ts";
import type { PgTable } from "../../../plugins/table.ts";
import type { WrittenColumn } from "../../../plugins/written-columns.ts";
import { countSignUps } from "./function-plans.ts";
import { insertNestedRow, writeAndReadRows } from "./planned-write.ts";

type WriteSource = Extract<FieldSource, { readonly kind: "write" }>;

export function planInsert({ table, noRowError }: WriteSource): FieldPlanResolver {
  const insert = (args: FieldArgs) => {
    countSignUps(table);
    const $row = new InsertedRowStep(table, noRowError!);
    args.apply($row, "input", (builder: PgInsertSingleQueryBuilder) => builder.setBuilder());
    return $row;
  };
  return (_$root, args, { field }) => {
    // The input type is that of the caller's role.
    const { type } = field.args.find(({ name }) => name === "input")!;
    if (hasNestedFields(type)) {
      countSignUps(table);
      return insertNestedRow(table, args.getRaw("input"), type);
    }
    return getNullableType(field.type) === GraphQLBoolean ? lambda(insert(args), () => true) : insert(args);
  };
}

export function planUpdate({ table, key, noRowError }: WriteSource): FieldPlanResolver {
  return (_$root, args) => {
    const $row = new UpdatedRowStep(table, keySteps(key, args), noRowError!);
    args.apply($row, "input", (builder: PgUpdateSingleQueryBuilder, input: object) => {
      if (Object.keys(input).length > 0) return builder.setBuilder();
      throw emptyInputError();
    });
    return $row;
  };
}

export function planDelete({ table, key }: WriteSource): FieldPlanResolver {
  return (_$root, args) => deleteRow(table, keySteps(key, args));
}

export function planRowsWrite(source: Extract<FieldSource, { readonly kind: "rows write" }>): FieldPlanResolver {
  const { table, args: names, toWrite } = source;
  return (_$root, given, { field }) => {
    // The input type is that of the caller's role.
    const { type } = field.args[0]!;
    const $values = names.map((name) => given.getRaw(name) as Step);
    return writeAndReadRows(table, $values, (schema, values) => toWrite(schema, type, values));
  };
}

export function applyColumn({ column, codec }: WrittenColumn): InputObjectFieldApplyResolver {
  return (target: SetterCapable<Record<string, unknown>>, value, { schema, field: { type } }) => {
    // A method of Object.prototype with the name of a column: the client sent no such field.
    if (typeof value === "function") return;
    target.set(column, bakedInputRuntime(schema, type, validIdOf(value, codec)));
  };
}

/** The key of a row: the step of each column's value. */
type KeySteps = Readonly<Record<string, Step>>;

function keySteps(key: WriteSource["key"], args: FieldArgs): KeySteps {
  return Object.fromEntries(key.map(({ column, argument }) => [column, args.getRaw(argument)]));
}

/** The inserted row. Rejects when a trigger skipped or redirected it, where core returns a row of nulls. */
class InsertedRowStep extends PgInsertSingleStep<PgTable> {
  readonly #noRowError: () => Error;

  constructor(table: PgTable, noRowError: () => Error) {
    super(table);
    this.#noRowError = noRowError;
  }

  override async execute(details: ExecutionDetails) {
    const rows = await super.execute(details);
    return rows.map(async (row) => {
      const written = await row;
      return written.c === 0 ? Promise.reject(this.#noRowError()) : written;
    });
  }
}

/** The updated row. Rejects when the caller may update no such row, where core returns null. */
class UpdatedRowStep extends PgUpdateSingleStep<PgTable> {
  readonly #noRowError: () => Error;

  constructor(table: PgTable, key: KeySteps, noRowError: () => Error) {
    super(table, key);
    this.#noRowError = noRowError;
  }

  override async execute(details: ExecutionDetails) {
    const rows = await super.execute(details);
    return rows.map(async (row) => (await row) ?? Promise.reject(this.#noRowError()));
  }
}

/** Resolves to true if a row was deleted. */
function deleteRow(table: PgTable, key: KeySteps): Step<boolean> {
  const columns = Object.keys(key);
  const from = table.from as SQL;
  return sideEffectWithPgClient(table.executor, list(Object.values(key)), async (client, values) => {
    const conditions = columns.map((column, index) => {
      const { codec } = table.codec.attributes[column]!;
      return equals(codec, sql.identifier(column), sqlValueWithCodec(values[index], codec));
    });
    const { rowCount } = await client.query(
      sql.compile(sql`delete from ${from} where ${sql.join(conditions, " and ")}`),
    );
    return (rowCount ?? 0) > 0;
  });
}

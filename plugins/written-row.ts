import {
  PgInsertSingleStep,
  PgUpdateSingleStep,
  sideEffectWithPgClient,
  sqlValueWithCodec,
} from "postgraphile/@dataplan/pg";
import { type SQL, sql } from "postgraphile/@dataplan/pg/pg-sql2";
import { type ExecutionDetails, list, type Step } from "postgraphile/grafast";
import { ApiError } from "../engine/errors.ts";
import { sqlNameOf, type Table } from "./table.ts";

/** The steps that name a row: each column of the key and its value. */
export type RowKey = Readonly<Record<string, Step>>;

/** The row that was added. Rejects when a trigger let it fall, or put it elsewhere; core would give a row of nulls. */
export class InsertedRowStep extends PgInsertSingleStep<Table> {
  override async execute(details: ExecutionDetails) {
    const rows = await super.execute(details);
    return rows.map(async (row) => {
      const written = await row;
      return written.c === 0 ? Promise.reject(noRowAdded(this.resource)) : written;
    });
  }
}

/** The row as it has become. Rejects when there is none that the caller may change; core would give null. */
export class UpdatedRowStep extends PgUpdateSingleStep<Table> {
  override async execute(details: ExecutionDetails) {
    const rows = await super.execute(details);
    return rows.map(async (row) => (await row) ?? Promise.reject(noSuchRow(this.resource)));
  }
}

/** Whether there was a row that the caller might delete. */
export function deleteRow(table: Table, key: RowKey): Step<boolean> {
  const columns = Object.keys(key);
  const from = table.from as SQL;
  return sideEffectWithPgClient(table.executor, list(Object.values(key)), async (client, values) => {
    const conditions = columns.map((column, index) => {
      const { codec } = table.codec.attributes[column]!;
      return sql`${sql.identifier(column)} = ${sqlValueWithCodec(values[index], codec)}`;
    });
    const { rowCount } = await client.query(
      sql.compile(sql`delete from ${from} where ${sql.join(conditions, " and ")}`),
    );
    return (rowCount ?? 0) > 0;
  });
}

function noRowAdded(table: Table): ApiError {
  return new ApiError(404, "RESOURCE_NOT_FOUND", "A trigger took the row: it left it out, or put it elsewhere.", {
    details: sqlNameOf(table),
  });
}

function noSuchRow(table: Table): ApiError {
  return new ApiError(404, "RESOURCE_NOT_FOUND", "There is no such row, or it is not yours to change.", {
    details: sqlNameOf(table),
  });
}

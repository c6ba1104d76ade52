import { type Catalog, type CatalogColumn, type CatalogTable, hasAnyColumnPrivilege, mayNameColumn } from "#catalog";
import { findTable } from "#planner/find-target";
import { quotedName } from "#postgres/client";
import type { ResultRow, Statement } from "#postgres/statement";
import { ApiError } from "#runtime";
import type { EqualityFilter } from "../matching/affected-rows.ts";
import type { LiveResult } from "../queries/live-subscriber.ts";
import { ConditionWriter, equalityFiltersOf, ROW, type ShapeTable } from "./where/condition-sql.ts";
import { parseCondition } from "./where/parse-condition.ts";

/** Values whose texts depend on settings; those of time zones also depend on the season, the year and the century. */
const FORMATTED = [
  ...["1850-01-01", "2000-01-01", "2000-07-01", "2024-07-01"].map((day) => `'${day} 00:00+00'::pg_catalog.timestamptz`),
  "'2000-01-31 00:00'::pg_catalog.timestamp",
  "'1 year 2 days 3 hours'::pg_catalog.interval",
  "'0.30000000000000004'::pg_catalog.float8",
  String.raw`'\x00'::pg_catalog.bytea`,
];
/** The condition keeps Postgres from computing some texts once for several requests, whose settings may differ. */
const FORMATS = `array[${FORMATTED.map((value) => `(case when pg_catalog.pg_backend_pid() > 0 then ${value} end)::pg_catalog.text`).join(", ")}]::pg_catalog.text`;
/** The texts of these values in the log of changes. */
const FORMATS_OF_LOG = String.raw`{"1850-01-01 00:00:00+00","2000-01-01 00:00:00+00","2000-07-01 00:00:00+00","2024-07-01 00:00:00+00","2000-01-31 00:00:00","1 year 2 days 03:00:00",0.30000000000000004,"\\x00"}`;

/** The table is a name, or a schema and a name; `values` are the values of `$1` and so on, by their number. */
export type ShapeParameters = {
  readonly table: readonly string[];
  readonly where: string | null;
  readonly values: ReadonlyMap<number, string>;
  /** Null: all columns that the caller may read. */
  readonly columns: readonly string[] | null;
};

/** The rows and columns of a table that a client keeps. */
export type ShapeDefinition = {
  /** An identity that requests of the same rows and columns share. */
  readonly identity: string;
  readonly table: CatalogTable;
  readonly columns: readonly CatalogColumn[];
  /** The places of the primary key in `columns`. */
  readonly keyPlaces: readonly number[];
  /** Returns all rows as one JSON array of arrays of texts. */
  readonly statement: Statement;
  /** A statement that also returns its snapshot, and the texts that show the format of all values. */
  readonly liveStatement: Statement;
  /** The condition of the rows, as SQL with the values of the statement. */
  readonly condition: string;
  readonly conditionColumns: readonly string[];
  readonly filters: readonly EqualityFilter[];
};

/** Finds the table and the columns in the catalogue, and writes the statement. */
export function defineShape(
  request: ShapeParameters,
  catalog: Catalog,
  role: string,
  schemas: readonly string[],
): ShapeDefinition {
  const [name, schema = schemas[0]!, ...others] = request.table.toReversed();
  if (others.length > 0) throw invalidShape("table must be a table, or a schema and a table");
  const table = findTable({ schema, name: name! }, catalog, role);
  const of = { table, catalog, role };
  if (table.primaryKey.length === 0) throw invalidShape("table has no primary key");
  const columns = findColumns(of, request.columns);
  const { condition, parameters, conditionColumns, filters } = writeCondition(of, request);
  const order = table.primaryKey.map((each) => quotedName(ROW, each)).join(", ");
  const rows = `coalesce(pg_catalog.json_agg(${rowSql(columns)} order by ${order}), '[]')::pg_catalog.text`;
  const from = `from ${quotedName(table.schema, table.name)} as ${ROW}\nwhere ${condition}`;
  const statement = { text: `select ${rows}\n${from}`, values: parameters };
  return {
    identity: JSON.stringify(["shape", table.oid, statement.text, statement.values]),
    table,
    columns,
    keyPlaces: table.primaryKey.map((each) => columns.findIndex((column) => column.name === each)),
    statement,
    liveStatement: {
      text: `select ${rows}, pg_catalog.pg_current_snapshot()::pg_catalog.text, ${FORMATS}\n${from}`,
      values: parameters,
    },
    condition,
    conditionColumns,
    filters,
  };
}

/** The rows and the snapshot that the live statement returns. */
export function readRowsOfRun([text, snapshot, formats]: ResultRow): Pick<LiveResult, "text" | "rowsSnapshot"> {
  return { text: text!, rowsSnapshot: formats === FORMATS_OF_LOG ? snapshot! : null };
}

/** The values of a row as an array of texts. */
export function rowSql(columns: readonly CatalogColumn[]): string {
  return `array[${columns.map(({ name }) => `${quotedName(ROW, name)}::pg_catalog.text`).join(", ")}]`;
}

function findColumns({ table, catalog, role }: ShapeTable, names: readonly string[] | null): CatalogColumn[] {
  const all = [...table.columns.values()];
  const isKey = ({ name }: CatalogColumn) => table.primaryKey.includes(name);
  if (names === null) {
    if (!hasAnyColumnPrivilege(catalog, role, "select", table)) return all;
    return all.filter((column) => isKey(column) || catalog.hasPrivilege(role, "select", table, column.name));
  }
  const unknown = names.find((name) => !table.columns.has(name) || !mayNameColumn(catalog, role, table, name));
  if (unknown !== undefined) throw invalidShape(`columns: there is no column ${JSON.stringify(unknown)}`);
  const missing = table.primaryKey.find((name) => !names.includes(name));
  if (missing !== undefined) {
    const mayName = table.primaryKey.every((name) => mayNameColumn(catalog, role, table, name));
    throw invalidShape(`columns must have the primary key${mayName ? `: ${table.primaryKey.join(", ")}` : ""}`);
  }
  return all.filter(({ name }) => names.includes(name));
}

function writeCondition(of: ShapeTable, { where, values }: ShapeParameters) {
  if (where === null || where.trim() === "")
    return { condition: "true", parameters: [], conditionColumns: [], filters: [] };
  const parsed = parseCondition({ text: where, values, parameter: "where" });
  const writer = new ConditionWriter(of, "where");
  const condition = writer.write(parsed);
  const filters = equalityFiltersOf(parsed, of.table.oid);
  return { condition, parameters: writer.values, conditionColumns: [...writer.columns], filters };
}

export function invalidShape(reason: string): ApiError {
  return new ApiError("invalid", "INVALID_SHAPE", `${reason}.`, {
    hint: "See the parameters of shapes in the documentation.",
  });
}

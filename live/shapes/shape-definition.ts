import { type Catalog, type CatalogColumn, type CatalogTable, hasAnyColumnPrivilege } from "#catalog";
import { findTable, mayNameColumn } from "#planner";
import { quotedName } from "#postgres/client";
import type { Statement } from "#postgres/database";
import { ApiError } from "#runtime";
import type { EqualityFilter } from "../queries/affected-rows.ts";
import { ConditionWriter, equalityFiltersOf, ROW, type ShapeTable } from "./where/condition-sql.ts";
import { parseCondition } from "./where/parse-condition.ts";

/** The table as a name, or a schema and a name; `values` are those of `$1` and so on, by their number. */
export type ShapeParameters = {
  readonly table: readonly string[];
  readonly where: string | null;
  readonly values: ReadonlyMap<number, string>;
  /** Null: all that the caller may read. */
  readonly columns: readonly string[] | null;
};

/** The rows and columns of a table that a client keeps. */
export type ShapeDefinition = {
  /** Equal for requests of the same rows and columns. */
  readonly identity: string;
  readonly table: CatalogTable;
  readonly columns: readonly CatalogColumn[];
  /** The places of the primary key in `columns`. */
  readonly keyPlaces: readonly number[];
  /** Returns all rows as one JSON array of arrays of texts. */
  readonly statement: Statement;
  /** The condition of the rows, as SQL with the values of the statement. */
  readonly condition: string;
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
  const { condition, parameters, filters } = writeCondition(of, request);
  const order = table.primaryKey.map((each) => quotedName(ROW, each)).join(", ");
  const statement = {
    text: `select coalesce(pg_catalog.json_agg(${rowSql(columns)} order by ${order}), '[]')::pg_catalog.text
from ${quotedName(table.schema, table.name)} as ${ROW}
where ${condition}`,
    values: parameters,
  };
  return {
    identity: JSON.stringify(["shape", table.oid, statement.text, statement.values]),
    table,
    columns,
    keyPlaces: table.primaryKey.map((each) => columns.findIndex((column) => column.name === each)),
    statement,
    condition,
    filters,
  };
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
  if (where === null || where.trim() === "") return { condition: "true", parameters: [], filters: [] };
  const parsed = parseCondition({ text: where, values, parameter: "where" });
  const writer = new ConditionWriter(of, "where");
  const condition = writer.write(parsed);
  return { condition, parameters: writer.values, filters: equalityFiltersOf(parsed, of.table.oid) };
}

export function invalidShape(reason: string): ApiError {
  return new ApiError("invalid", "INVALID_SHAPE", `${reason}.`, {
    hint: "See the parameters of shapes in the documentation.",
  });
}

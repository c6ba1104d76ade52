import { type SQL, sql } from "@dataplan/pg/pg-sql2";

/** The row of an alias as one value. The alias alone would be a column, if the table has one of that name. */
export function wholeRow(row: SQL): SQL {
  return sql.getIdentifierSymbol(row) ? sql`${row}.*` : row;
}

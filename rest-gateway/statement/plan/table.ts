import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { QualifiedName } from "../../../engine/catalog/qualified-name.ts";
import type { Table } from "../../../engine/catalog/tables.ts";
import { ApiError } from "../../../engine/errors.ts";
import { nearest } from "./near.ts";
import { maySee } from "./sight.ts";

const ALIKE = 0.75;

/** Refuses a table that there is not, or that is not served (PGRST205). */
export function findTable(name: QualifiedName, catalog: Catalog, role: string): Table {
  const table = catalog.findTable(name);
  if (!table || !isServed(table, catalog)) throw noTable(name, catalog, role);
  return table;
}

/** Partitions are served as part of their table. */
function isServed({ schema, isPartition }: Table, catalog: Catalog): boolean {
  return !isPartition && catalog.schemas.get(schema)?.exposed === true;
}

function noTable({ schema, name }: QualifiedName, catalog: Catalog, role: string): ApiError {
  const tables = catalog.schemas.get(schema)?.tables ?? new Map<string, Table>();
  const mayName = (known: string) => isServed(tables.get(known)!, catalog) && maySee(catalog, role, tables.get(known)!);
  const meant = nearest(name, [...tables.keys()], { least: ALIKE, mayName });
  return new ApiError(404, "PGRST205", `Could not find the table '${schema}.${name}' in the schema cache`, {
    hint: meant && `Perhaps you meant the table '${schema}.${meant}'`,
  });
}

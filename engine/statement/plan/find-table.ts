import type { Catalog } from "../../catalog/catalog.ts";
import type { CatalogTable } from "../../catalog/tables.ts";
import type { QualifiedName } from "../../catalog/types.ts";
import { ApiError } from "../../errors.ts";
import { mayNameTable, suggestName } from "./suggestions.ts";

const MIN_SIMILARITY = 0.75;

/** Throws PGRST205 if the table does not exist or is not served. */
export function findTable(name: QualifiedName, catalog: Catalog, role: string): CatalogTable {
  const table = catalog.findTable(name);
  if (!table || !isServed(table, catalog)) throw tableNotFound(name, catalog, role);
  return table;
}

/** Partitions are served as part of their table. */
function isServed({ schema, isPartition }: CatalogTable, catalog: Catalog): boolean {
  return !isPartition && catalog.schemas.get(schema)?.exposed === true;
}

function tableNotFound({ schema, name }: QualifiedName, catalog: Catalog, role: string): ApiError {
  const tables = catalog.schemas.get(schema)?.tables ?? new Map<string, CatalogTable>();
  const mayName = (known: string) =>
    isServed(tables.get(known)!, catalog) && mayNameTable(catalog, role, tables.get(known)!);
  const suggestion = suggestName(name, [...tables.keys()], { minSimilarity: MIN_SIMILARITY, mayName });
  return new ApiError("notFound", "PGRST205", `Could not find the table '${schema}.${name}' in the schema cache`, {
    hint: suggestion && `Perhaps you meant the table '${schema}.${suggestion}'`,
  });
}

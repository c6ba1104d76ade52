import type { Catalog } from "../catalog/catalog.ts";
import { exposedSchemas } from "../catalog/exposed-schemas.ts";
import type { Table } from "../catalog/tables.ts";

/** What clients could ask for, if they are let; the parts of a partitioned table are reached by the whole. */
export function exposedTables(catalog: Pick<Catalog, "schemas">): Table[] {
  return exposedSchemas(catalog)
    .flatMap(({ tables }) => [...tables.values()])
    .filter(({ isPartition, extension }) => !isPartition && extension === null);
}

import type { Routine } from "../../engine/catalog/routines.ts";
import type { Table } from "../../engine/catalog/tables.ts";

/** What is computed from a row and selected by name. A row that a function takes or gives has none of it. */
export function computedColumns({ schema, computedColumns }: Table): Routine[] {
  return [...computedColumns.values()].filter((routine) => routine.schema === schema && !routine.returns.set);
}

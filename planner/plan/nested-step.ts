import type { CatalogTable } from "#catalog";
import type { NestedRow } from "./nested-rows.ts";
import type { NestedChangePlan, NestedInsertPlan, RecordColumn, SavedRows } from "./plan.ts";

/** A statement of a nested write, and the rows of the payload that it concerns. */
export type NestedStep = {
  readonly plan: NestedInsertPlan | NestedChangePlan;
  readonly table: CatalogTable;
  readonly rows: readonly Pick<NestedRow, "path" | "values">[];
  /** JSON: the rows, with the numbers of the rows that they refer to. */
  readonly payload: Buffer;
};

/** Statements whose saved columns are not known yet: they depend on the following statements. */
export type StepDraft = { toSteps(): readonly NestedStep[] };

/** Rows that the following statements may refer to. */
export type RowSaver = {
  /** Saves a column, which may not be null. */
  require(name: string): void;
  readonly saved: SavedRows;
};

export function toPositionColumn(name: string): RecordColumn {
  return { name, sqlType: "integer", element: null, reader: null, missingValue: null };
}

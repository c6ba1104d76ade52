import type { Routine } from "../../catalog/routines.ts";
import type { CatalogTable } from "../../catalog/tables.ts";
import type { QualifiedName } from "../../catalog/types.ts";
import { ApiError } from "../../errors.ts";
import type { ResponseFormat } from "../intent.ts";
import type { BodyPlan } from "./negotiate-format.ts";
import type { LegacyTarget } from "./select-tree.ts";
import type { RoutineCall, SelectPlan, WherePredicate } from "./selection.ts";

export type Plan = ReadPlan | WritePlan | CallPlan;

export type ReadPlan = CommonPlan & {
  readonly kind: "read";
  readonly table: CatalogTable;
  /** Whether to query Postgres's estimate of the number of rows. */
  readonly needsEstimate: boolean;
  /** The ranges of a keyset page to materialize; empty if the rows are read from the table. */
  readonly keptPages: readonly SelectPlan[];
};
export type WritePlan = CommonPlan & {
  readonly kind: "write";
  readonly table: CatalogTable;
  readonly change: ChangePlan;
  readonly result: KeptColumns;
  /** The key columns for the Location of a new row; null if not requested. */
  readonly location: readonly string[] | null;
};
export type CallPlan = CommonPlan & {
  readonly kind: "call";
  readonly routine: Routine;
  readonly call: RoutineCall;
  /** Null if the function is called in the FROM clause of the selection. */
  readonly result: KeptColumns | null;
};

type CommonPlan = {
  /** The chosen format. */
  readonly format: ResponseFormat;
  readonly body: BodyPlan;
  readonly rows: SelectPlan;
  /** Absent if there are none. */
  readonly legacyTargets?: readonly LegacyTarget[];
  /** Null if there is no page, or a page by offset. */
  readonly keyset: KeysetPlan | null;
  readonly total: TotalPlan;
  /** Whether the transaction can be read-only. */
  readonly readOnly: boolean;
  readonly guards: readonly RowCountGuard[];
};

/** What a page by position has besides its rows. */
export type KeysetPlan = {
  /** What the cursors of this order bear. */
  readonly order: string;
  readonly isFirst: boolean;
  /** The rows there are, wherever the page begins. */
  readonly all: SelectPlan;
};

/** The total number of rows: not requested; the rows of the page; or counted, up to a limit. */
export type TotalPlan =
  | { readonly kind: "none" }
  | { readonly kind: "page" }
  | { readonly kind: "counted"; readonly most: number | null };

/** The columns of the result that are kept for the selection; names that are no columns are computed. */
export type KeptColumns = { readonly wholeRow: boolean; readonly names: readonly string[] };

/** What a write does to its table. The conditions of an insert speak of its records, the others of the table. */
export type ChangePlan = { readonly table: QualifiedName; readonly where: readonly WherePredicate[] } & (
  | { readonly kind: "insert"; readonly records: RecordsPlan; readonly conflict: ConflictPlan | null }
  | { readonly kind: "update"; readonly records: RecordsPlan; readonly findsUnchanged: boolean }
  | { readonly kind: "delete" }
);

/** Rows with the same values in these columns that are there already are changed, or left alone. */
export type ConflictPlan = { readonly columns: readonly string[]; readonly resolution: "merge" | "ignore" };

/** The payload, read as rows with the table's own types. */
export type RecordsPlan = {
  readonly alias: string;
  readonly isArray: boolean;
  /** One array for each column takes Postgres a third less than the JSON text; and JSON in it, a quarter of the memory. */
  readonly byColumn: boolean;
  readonly columns: readonly RecordColumn[];
};

export type RecordColumn = {
  readonly name: string;
  readonly sqlType: string;
  /** Of the elements, where the column's values can come in an array. */
  readonly element: ArrayElementPlan | null;
  /** How JSON is read, where Postgres itself would not read it as it writes it; null: by the type's input function. */
  readonly reader: JsonReader | null;
  /** What the column becomes in a record that does not name it; null: null. */
  readonly missingValue: ColumnDefaultPlan | null;
};

/** The function that reads JSON as the column's domain; or an hstore, an object to clients, or a list of them. */
export type JsonReader =
  | { readonly kind: "function"; readonly name: string }
  | { readonly kind: "hstore"; readonly schema: string; readonly isList: boolean };

/** A default as the catalogue spells it, or the next number of an identity column. */
export type ColumnDefaultPlan =
  | { readonly kind: "expression"; readonly text: string }
  | { readonly kind: "identity"; readonly table: QualifiedName; readonly column: string };

export type ArrayElementPlan = {
  readonly sqlType: string;
  /** What a text becomes in its row alone. */
  readonly cast: string | null;
  readonly isJson: boolean;
};

/** Fails and rolls back if the number of rows differs from or exceeds this. */
export type RowCountGuard = {
  readonly code: "PGRST115" | "PGRST116" | "PGRST124";
  readonly rows: "exactly" | "at most";
  readonly count: number;
};

export type PlanOptions = {
  /** The caller's role: errors do not disclose objects that it may not see. */
  readonly role: string;
  readonly aggregates: boolean;
  readonly maxRows: number | null;
  /** Whether update and delete require a condition. */
  readonly safeWrites: boolean;
  readonly legacyTargetNames: boolean;
  /** Whether clients may request execution plans. */
  readonly explainEnabled: boolean;
};

/** For PUT with a payload whose key differs from the URL. */
export function keyMismatch(): ApiError {
  return new ApiError("invalid", "PGRST115", "Payload values do not match URL in primary key column(s)");
}

export function notOneRow(rows: number): ApiError {
  return new ApiError("notAcceptable", "PGRST116", "Cannot coerce the result to a single JSON object", {
    details: `The result contains ${rows} rows`,
  });
}

export function tooManyRowsAffected(rows: number): ApiError {
  return new ApiError("invalid", "PGRST124", "Query result exceeds max-affected preference constraint", {
    details: `The query affects ${rows} rows`,
  });
}

import type { Catalog } from "../../catalog/catalog.ts";
import type { Routine } from "../../catalog/routines.ts";
import type { CatalogTable } from "../../catalog/tables.ts";
import { ApiError } from "../../errors.ts";
import type { FilterOperation, Intent, ResponseFormat, ResponseOptions, RowOperation } from "../intent.ts";
import { listOperations } from "./bind-parameters.ts";
import type { KeysetPlan } from "./keyset-page.ts";
import type { BodyPlan } from "./negotiate-format.ts";
import { planCall, type RoutineCall } from "./plan-call.ts";
import { planRead } from "./plan-read.ts";
import type { PlanContext } from "./plan-selection.ts";
import { type ChangePlan, planWrite } from "./plan-write.ts";
import type { LegacyTarget } from "./select-tree.ts";
import type { SelectPlan } from "./selection.ts";

export type Plan = ReadPlan | WritePlan | CallPlan;

export type ReadPlan = CommonPlan & {
  readonly kind: "read";
  readonly table: CatalogTable;
  /** Postgres is to be asked how many rows it expects. */
  readonly needsEstimate: boolean;
  /** What is read of the table before the rows are: in each of these ways those of a page. Empty: the rows are read from it. */
  readonly keptPages: readonly SelectPlan[];
};
export type WritePlan = CommonPlan & {
  readonly kind: "write";
  readonly table: CatalogTable;
  readonly change: ChangePlan;
  readonly result: KeptColumns;
  /** The columns that tell a new row from others; null when nobody wants to know where it is. */
  readonly location: readonly string[] | null;
};
export type CallPlan = CommonPlan & {
  readonly kind: "call";
  readonly routine: Routine;
  readonly call: RoutineCall;
  /** Null: the function is called where its rows are read. */
  readonly result: KeptColumns | null;
};

type CommonPlan = {
  /** Of those that the client accepts the one that is made. */
  readonly format: ResponseFormat;
  readonly body: BodyPlan;
  readonly rows: SelectPlan;
  /** Absent: there are none. */
  readonly legacyTargets?: readonly LegacyTarget[];
  /** Null: it is no page, or one by its number. */
  readonly keyset: KeysetPlan | null;
  readonly total: TotalPlan;
  /** Postgres may be told that nothing will be written. */
  readonly readOnly: boolean;
  readonly guards: readonly RowCountGuard[];
};

/** How many rows there are beyond the page: not asked; as many as on the page; counted, up to a limit. */
export type TotalPlan =
  | { readonly kind: "none" }
  | { readonly kind: "page" }
  | { readonly kind: "counted"; readonly most: number | null };

/** What a change or a call leaves for the rows to be read from; other names than columns are computed. */
export type KeptColumns = { readonly wholeRow: boolean; readonly names: readonly string[] };

/** Refuses, and undoes what was written, when the number of rows is another than this or above this. */
export type RowCountGuard = {
  readonly code: "PGRST115" | "PGRST116" | "PGRST124";
  readonly rows: "exactly" | "at most";
  readonly count: number;
};

export type PlanOptions = {
  /** The caller, who is told of nothing that she may not see. */
  readonly role: string;
  readonly aggregates: boolean;
  readonly maxRows: number | null;
  /** Update and delete need a condition. */
  readonly safeWrites: boolean;
  readonly legacyTargetNames: boolean;
  /** Whether clients may see how Postgres would make an answer. */
  readonly explainEnabled: boolean;
};

/** Refuses what does not exist or could be several things: PGRST1xx and 2xx. A plan holds no value of the intent. */
export function planIntent(intent: Intent, response: ResponseOptions, catalog: Catalog, options: PlanOptions): Plan {
  const parameterIndexes = new Map(listOperations(intent).map((operation, index) => [operation, index]));
  const legacyTargets = new Map<string, LegacyTarget>();
  const context: PlanContext = {
    catalog,
    role: options.role,
    aggregates: options.aggregates,
    schema: intent.target.schema,
    maxRows: intent.kind === "read" || intent.kind === "call" ? options.maxRows : null,
    legacyTargetNames: options.legacyTargetNames,
    onLegacyName: (target) => legacyTargets.set(target.name, target),
    parameterFor: (operation: FilterOperation | RowOperation) => ({
      kind: "operand",
      index: parameterIndexes.get(operation)!,
    }),
  };
  const plan = planByKind(intent, response, context, options);
  return legacyTargets.size === 0 ? plan : { ...plan, legacyTargets: [...legacyTargets.values()] };
}

function planByKind(intent: Intent, response: ResponseOptions, context: PlanContext, options: PlanOptions): Plan {
  switch (intent.kind) {
    case "read":
      return planRead(intent, response, context, options);
    case "call":
      return planCall(intent, response, context, options);
    default:
      return planWrite(intent, response, context, options);
  }
}

/** PUT, with a payload that names another row than the URL. */
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

import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { Routine } from "../../../engine/catalog/routines.ts";
import type { Table } from "../../../engine/catalog/tables.ts";
import type { Format, Intent, Manner, Operation, RowOperation } from "../intent.ts";
import { type Call, planCall } from "./call.ts";
import type { Change } from "./change.ts";
import type { Body } from "./format.ts";
import type { PagePlan } from "./page.ts";
import { planRead } from "./read.ts";
import type { Planning } from "./select.ts";
import type { Selection } from "./selection.ts";
import { operationsOf } from "./slots.ts";
import type { LegacyTarget } from "./tree.ts";
import { planWrite } from "./write.ts";

export type Plan = ReadPlan | WritePlan | CallPlan;

export type ReadPlan = Answer & {
  readonly kind: "read";
  readonly table: Table;
  /** Postgres is to be asked how many rows it expects. */
  readonly estimated: boolean;
  /** What is read of the table before the rows are: in each of these ways those of a page. Empty: the rows are read from it. */
  readonly kept: readonly Selection[];
};
export type WritePlan = Answer & {
  readonly kind: "write";
  readonly table: Table;
  readonly change: Change;
  readonly result: Result;
  /** The columns that tell a new row from others; null when nobody wants to know where it is. */
  readonly location: readonly string[] | null;
};
export type CallPlan = Answer & {
  readonly kind: "call";
  readonly routine: Routine;
  readonly call: Call;
  /** Null: the function is called where its rows are read. */
  readonly result: Result | null;
};

type Answer = {
  /** Of those that the client accepts the one that is made. */
  readonly format: Format;
  readonly body: Body;
  readonly rows: Selection;
  /** Absent: there are none. */
  readonly legacyTargets?: readonly LegacyTarget[];
  /** Null: it is no page, or one by its number. */
  readonly page: PagePlan | null;
  readonly total: Total;
  /** Postgres may be told that nothing will be written. */
  readonly readOnly: boolean;
  readonly guards: readonly Guard[];
};

/** How many rows there are beyond the page: not asked; as many as on the page; counted, up to a limit. */
export type Total =
  | { readonly kind: "none" }
  | { readonly kind: "page" }
  | { readonly kind: "counted"; readonly most: number | null };

/** What a change or a call leaves for the rows to be read from; other names than columns are computed. */
export type Result = { readonly wholeRow: boolean; readonly names: readonly string[] };

/** Refuses, and undoes what was written, when the number of rows is another than this or above this. */
export type Guard = {
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
  readonly explain: boolean;
};

/** Refuses what does not exist or could be several things: PGRST1xx and 2xx. A plan holds no value of the intent. */
export function planIntent(intent: Intent, manner: Manner, catalog: Catalog, options: PlanOptions): Plan {
  const slots = new Map(operationsOf(intent).map((operation, index) => [operation, index]));
  const legacyTargets = new Map<string, LegacyTarget>();
  const planning: Planning = {
    catalog,
    role: options.role,
    aggregates: options.aggregates,
    schema: intent.target.schema,
    maxRows: intent.kind === "read" || intent.kind === "call" ? options.maxRows : null,
    legacyTargetNames: options.legacyTargetNames,
    onLegacyName: (target) => legacyTargets.set(target.name, target),
    slotOf: (operation: Operation | RowOperation) => ({ kind: "operand", index: slots.get(operation)! }),
  };
  const plan = planKind(intent, manner, planning, options);
  return legacyTargets.size === 0 ? plan : { ...plan, legacyTargets: [...legacyTargets.values()] };
}

function planKind(intent: Intent, manner: Manner, planning: Planning, options: PlanOptions): Plan {
  switch (intent.kind) {
    case "read":
      return planRead(intent, manner, planning, options);
    case "call":
      return planCall(intent, manner, planning, options);
    default:
      return planWrite(intent, manner, planning, options);
  }
}

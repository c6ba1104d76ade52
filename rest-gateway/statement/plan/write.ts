import type { Manner } from "../intent.ts";
import { planChange, type WriteIntent } from "./change.ts";
import { negotiate } from "./format.ts";
import type { Guard, PlanOptions, WritePlan } from "./plan.ts";
import { isEverything } from "./read.ts";
import { planResult } from "./result.ts";
import { tableScope } from "./scope.ts";
import type { Planning } from "./select.ts";
import { findTable } from "./table.ts";
import { plant } from "./tree.ts";

export function planWrite(intent: WriteIntent, manner: Manner, planning: Planning, options: PlanOptions): WritePlan {
  const { catalog, role } = planning;
  const { shape, returned, count } = intent;
  const table = findTable(intent.target, catalog, role);
  const node = plant(shape, planning);
  // Which rows are written is one question, and what comes back of them another.
  const change = planChange(intent, table, node, planning, options);
  const scope = tableScope(table, { alias: table.name, depth: 0, taken: new Set() });
  const { rows, result } = planResult({ ...node, conditions: [], window: null }, scope, table, planning);
  const selectsAll = isEverything(shape.select);
  const { format, body } = negotiate({ ...manner, target: table, selectsAll, catalog, explain: options.explain });
  const location = intent.kind === "insert" && returned === "headers" ? table.primaryKey : null;
  return {
    kind: "write",
    table,
    change,
    rows,
    page: null,
    result: returned === "rows" ? result : { wholeRow: false, names: location ?? [] },
    location,
    format,
    body: returned === "rows" ? body : { kind: "none" },
    total: count === null || count === "planned" ? { kind: "none" } : { kind: "page" },
    readOnly: false,
    guards: guardsOf(intent, manner, format.kind === "object"),
  };
}

function guardsOf(intent: WriteIntent, { maxAffected }: Manner, isSingular: boolean): Guard[] {
  if (intent.kind === "insert" && intent.single) return [{ code: "PGRST115", rows: "exactly", count: 1 }];
  const guards: Guard[] = [];
  if (isSingular) guards.push({ code: "PGRST116", rows: "exactly", count: 1 });
  if (maxAffected !== null && intent.kind !== "insert")
    guards.push({ code: "PGRST124", rows: "at most", count: maxAffected });
  return guards;
}

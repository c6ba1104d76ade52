import type { Catalog } from "../../catalog/catalog.ts";
import type { FilterOperation, Intent, ResponseOptions, RowOperation } from "../intent.ts";
import { listOperations } from "./bind-parameters.ts";
import type { Plan, PlanOptions } from "./plan.ts";
import { planCall } from "./plan-call.ts";
import { planRead } from "./plan-read.ts";
import type { PlanContext } from "./plan-selection.ts";
import { planWrite } from "./plan-write.ts";
import type { LegacyTarget } from "./select-tree.ts";

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

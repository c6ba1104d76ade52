import type { PgExecutor } from "@dataplan/pg";
import { operationPlan } from "grafast";

const sharing = new WeakSet<PgExecutor>();

/** Statements are joined only if their context is the same; without this, steps below a mutation have another context. */
export function shareContext(executor: PgExecutor): void {
  if (sharing.has(executor)) return;
  sharing.add(executor);
  const contextHere = executor.context.bind(executor);
  executor.context = () => operationPlan().withRootLayerPlan(contextHere);
}

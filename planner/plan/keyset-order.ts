import { createHash } from "node:crypto";
import type { QualifiedName } from "#catalog";
import { ApiError } from "#runtime";
import type { CursorPosition, Intent, OrderTerm } from "../intent/intent.ts";
import { bindValues } from "./bind-parameters.ts";
import type { Plan } from "./plan.ts";

/** A short hash that is equal for orders of the same rows if they differ at most in the values of measures. */
export function orderFingerprint(kind: "read" | "call", of: QualifiedName, order: readonly OrderTerm[]): string {
  const terms = order.map((term) => [
    term.relation,
    { ...term.field, measure: term.field.measure?.name },
    isDescending(term),
    hasNullsLast(term),
    ...(term.by ? [term.by] : []),
  ]);
  return digestOf([kind, of.schema, of.name, terms]);
}

function digestOf(parts: readonly unknown[]): string {
  const digest = createHash("sha256").update(JSON.stringify(parts)).digest();
  return digest.subarray(0, 6).toString("base64url");
}

export function isDescending({ direction }: OrderTerm): boolean {
  return direction === "desc";
}

export function hasNullsLast(term: OrderTerm): boolean {
  return term.nulls === null ? !isDescending(term) : term.nulls === "last";
}

/** The indexes of the operands in an expression. */
export function operandsOf(part: unknown): number[] {
  if (typeof part !== "object" || part === null) return [];
  if ("kind" in part && part.kind === "operand" && "index" in part) return [Number(part.index)];
  return Object.values(part).flatMap(operandsOf);
}

/** The plan with the order of this request. Its cursors belong to the values in the order, such as a point. */
export function bindKeysetOrder(plan: Plan, intent: Intent): Plan {
  if (plan.kind === "write" || !plan.keyset || !("page" in intent)) return plan;
  const { keyset } = plan;
  const parameters = keyset.operands.map((index) => ({ kind: "operand", index }) as const);
  const order = parameters.length === 0 ? keyset.order : `${keyset.order}.${digestOf(bindValues(parameters, intent))}`;
  if (intent.page?.kind === "after" && intent.page.position.order !== order) throw cursorMismatch();
  return order === keyset.order ? plan : { ...plan, keyset: { ...keyset, order } };
}

/** The part of a cursor's order that requests of one shape have in common. */
export function orderOfShape({ order }: CursorPosition): string {
  return order.split(".", 1)[0]!;
}

export function cursorMismatch(): ApiError {
  return new ApiError("invalid", "PGRST191", "The cursor belongs to other rows or to another order", {
    hint: "Keep the table and the order of the first page; an empty cursor gives the first page.",
  });
}

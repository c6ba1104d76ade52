import type { PgCodec, PgSelectSingleStep } from "@dataplan/pg";
import { type FieldPlanResolver, lambda, type Step } from "grafast";
import type { FieldSource } from "../../../plugins/field-sources.ts";
import { bindWithCodec, type InputObject } from "../../../plugins/row-conditions.ts";
import type { PgTable } from "../../../plugins/table.ts";

type Edge = Step & { node(): PgSelectSingleStep<PgTable> };

/** The rank or the highlight of a search, in the statement of the rows. */
export function planSearchResult({
  argument,
  valueFor,
  codec,
}: Extract<FieldSource, { readonly kind: "search result" }>): FieldPlanResolver {
  return ($parent, args) => {
    const $edge = $parent as Step as Edge;
    const $row = $edge.node();
    const $rows = $row.getClassStep();
    const toValue = (search: unknown) => valueFor(search as InputObject, $rows.alias, bindWithCodec);
    // The rows' statement belongs to the layer above each row's layer.
    const value = $rows.withLayerPlan(() => $rows.deferredSQL(lambda(args.getRaw(argument), toValue)));
    return $row.select(value, codec as PgCodec);
  };
}

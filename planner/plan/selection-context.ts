import type { Catalog, DirectRelationship } from "#catalog";
import type { BindParameter, OperandOperation } from "../intent/intent.ts";
import type { NamedSelectColumn, SelectScope } from "./scope.ts";
import type { EmbedNameRules, EmbedNode, SelectNode } from "./select-tree.ts";
import type { OutputColumn, SelectPlan, SpreadJoin } from "./selection.ts";

/** The context shared by all parts of one plan. */
export type PlanContext = EmbedNameRules & {
  readonly catalog: Catalog;
  readonly role: string;
  /** The schema of the request, in which relations are looked up. */
  readonly schema: string;
  /** True if clients may use aggregates. */
  readonly aggregates: boolean;
  /** The maximum number of rows of a selection; null is no limit. */
  readonly maxRows: number | null;
  parameterFor(operation: OperandOperation): BindParameter;
};

/** The names that conditions and orders of one selection may refer to. */
export type SelectionContext = {
  readonly node: SelectNode;
  readonly scope: SelectScope;
  readonly relations: readonly PlannedRelation[];
  readonly planContext: PlanContext;
  /** Finds the relation of this name in the select, or plans it if it is not selected. */
  findRelation(name: string, found?: DirectRelationship): PlannedRelation;
  /** Finds the selected column of this name in the response. */
  findSelectedColumn(name: string): NamedSelectColumn | null;
  selectedOutputs(): readonly OutputColumn[];
  /** True for writes: a name means the column, even if a relation is returned under that name. */
  readonly prefersColumns: boolean;
};

export type PlannedRelation = {
  readonly branch: EmbedNode;
  readonly toOne: boolean;
  readonly context: SelectionContext;
  readonly subquery: SelectPlan;
  readonly spread: SpreadJoin | null;
  /** The columns that the parent row shows of it. */
  readonly columns: readonly NamedSelectColumn[];
};

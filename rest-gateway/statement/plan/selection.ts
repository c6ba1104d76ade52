import type { QualifiedName } from "../../../engine/catalog/qualified-name.ts";
import type { Aggregate, Comparison, JsonStep, OrderTerm, Quantifier, Search } from "../intent.ts";
import type { Call } from "./call.ts";
import type { Slot } from "./slots.ts";

/** One `select`, of what was asked for or of a relation embedded in it: every name is resolved, nothing is spelled. */
export type Selection = {
  readonly source: Source;
  /** What its rows are called in the statement. */
  readonly alias: string;
  readonly outputs: readonly Output[];
  /** Relations whose columns become columns of this one. */
  readonly spreads: readonly Spread[];
  readonly where: readonly Where[];
  /** Rows with the same values in all outputs that are no aggregates become one. */
  readonly grouped: boolean;
  readonly order: readonly Ordering[];
  readonly offset: number;
  readonly limit: number | null;
};

export function column(of: string, name: string): Expression {
  return { kind: "column", of, name };
}

/** The same rows, and of them only this. Relations spread into them stay where they are ordered by one. */
export function showing(outputs: readonly Output[], rows: Selection): Selection {
  const isOrderedBy = (alias: string) => rows.order.some(({ value }) => value.kind === "column" && value.of === alias);
  return { ...rows, outputs, spreads: rows.spreads.filter(({ alias }) => isOrderedBy(alias)) };
}

export type Source =
  | { readonly kind: "table"; readonly name: QualifiedName; readonly through: Junction | null }
  /** A function of a row of the relation around it. */
  | { readonly kind: "row function"; readonly routine: QualifiedName; readonly row: Row }
  | { readonly kind: "call"; readonly call: Call }
  /** What the statement has changed or called before. */
  | { readonly kind: "result" };

export type Junction = {
  readonly table: QualifiedName;
  readonly alias: string;
  readonly on: readonly {
    readonly junction: string;
    readonly target: string;
    readonly operatorSchema: string | null;
  }[];
};

/** A whole row; of a result it is put together again, since there it has lost its type. */
export type Row = { readonly of: string; readonly as: Composed | null };
export type Composed = { readonly type: QualifiedName; readonly columns: readonly string[] };

export type Output =
  | { readonly kind: "all" }
  | { readonly kind: "value"; readonly name: string; readonly value: Expression; readonly isAggregate: boolean };

export type Expression =
  | { readonly kind: "column"; readonly of: string; readonly name: string }
  /** Something that every row has, to be counted. */
  | { readonly kind: "one" }
  /** Json and jsonb have steps of their own; other types become jsonb first. */
  | {
      readonly kind: "json";
      readonly of: Expression;
      readonly convert: boolean;
      readonly path: readonly JsonStep[];
    }
  /** The function is as the catalogue spells it. */
  | { readonly kind: "represented"; readonly by: string; readonly of: Expression }
  | { readonly kind: "cast"; readonly of: Expression; readonly type: string }
  | { readonly kind: "aggregate"; readonly name: Aggregate; readonly of: Expression | null }
  /** A value of the row, if there is one, that the selection finds. */
  | { readonly kind: "lookup"; readonly value: Expression; readonly from: Selection }
  /** The rows of a relation as JSON. */
  | { readonly kind: "embedded"; readonly form: "object" | "array"; readonly from: Selection };

/** `arrays`: the values of all its rows, one array for each column. */
export type Spread = {
  readonly alias: string;
  readonly form: "columns" | "arrays";
  readonly selection: Selection;
};

export type Where =
  | {
      readonly kind: "compare";
      readonly negated: boolean;
      readonly left: Expression;
      readonly operator: Comparison;
      /** Null: Postgres looks for the operator on the search path. */
      readonly operatorSchema: string | null;
      readonly quantifier: Quantifier | null;
      readonly operand: Operand;
    }
  | {
      readonly kind: "in";
      readonly negated: boolean;
      readonly left: Expression;
      readonly operatorSchema: string | null;
      readonly operand: Operand;
    }
  | {
      readonly kind: "is";
      readonly negated: boolean;
      readonly left: Expression;
      readonly value: "null" | "not_null" | "true" | "false" | "unknown";
    }
  | { readonly kind: "distinct"; readonly negated: boolean; readonly left: Expression; readonly operand: Operand }
  | {
      readonly kind: "search";
      readonly negated: boolean;
      readonly left: Expression;
      /** The text is not yet one that can be searched. */
      readonly convert: boolean;
      readonly operator: Search;
      readonly language: string | null;
      readonly operand: Operand;
    }
  | { readonly kind: "and" | "or"; readonly negated: boolean; readonly parts: readonly Where[] }
  | {
      readonly kind: "exists";
      readonly negated: boolean;
      readonly selection: Selection;
      readonly and: readonly Where[];
    }
  | {
      readonly kind: "same";
      readonly left: Expression;
      readonly operatorSchema: string | null;
      readonly right: Expression;
    }
  /** Where the row is to the position that a page begins at: of several columns the first that differs decides. */
  | {
      readonly kind: "position";
      readonly left: readonly Expression[];
      readonly operator: "eq" | "gt" | "lt";
      readonly right: readonly PositionOperand[];
    }
  /** Of what the outputs show of the row. */
  | { readonly kind: "digest"; readonly negated: boolean; readonly outputs: readonly Output[]; readonly slot: Slot }
  /** Among the rows that the function finds is one with this key. */
  | {
      readonly kind: "found";
      readonly negated: boolean;
      readonly key: readonly { readonly name: string; readonly value: Expression }[];
      readonly by: QualifiedName;
      readonly slot: Slot;
    }
  /** By the text of policies, whose columns are those of the table itself. */
  | { readonly kind: "permitted"; readonly negated: boolean; readonly text: string }
  /** As an order sees it: a row of nothing but nulls is there, while `is null` holds for it. */
  | { readonly kind: "presence"; readonly left: Expression; readonly present: boolean };

/** Without a function Postgres itself finds the type, from what the value is compared with. */
export type Operand = { readonly slot: Slot; readonly by: string | null };

/** With a type where Postgres would not take that of what it is compared with. */
export type PositionOperand = { readonly slot: Slot; readonly type: QualifiedName | null };

export type Ordering = Pick<OrderTerm, "direction" | "nulls"> & { readonly value: Expression };

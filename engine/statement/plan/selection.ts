import type { QualifiedName } from "../../catalog/types.ts";
import type {
  AggregateName,
  ComparisonName,
  JsonPathStep,
  OperatorQuantifier,
  OrderTerm,
  SearchOperator,
} from "../intent.ts";
import type { BindParameter } from "./bind-parameters.ts";

/** One `select`, of what was asked for or of a relation embedded in it: every name is resolved, nothing is spelled. */
export type SelectPlan = {
  readonly source: RowSource;
  /** What its rows are called in the statement. */
  readonly alias: string;
  readonly outputs: readonly OutputColumn[];
  /** Relations whose columns become columns of this one. */
  readonly spreads: readonly SpreadJoin[];
  readonly where: readonly WherePredicate[];
  /** Rows with the same values in all outputs that are no aggregates become one. */
  readonly grouped: boolean;
  readonly order: readonly OrderExpression[];
  readonly offset: number;
  readonly limit: number | null;
};

export function columnExpression(of: string, name: string): ValueExpression {
  return { kind: "column", of, name };
}

/** The same rows, and of them only this. Relations spread into them stay where they are ordered by one. */
export function withOutputs(outputs: readonly OutputColumn[], rows: SelectPlan): SelectPlan {
  const isOrderedBy = (alias: string) => rows.order.some(({ value }) => value.kind === "column" && value.of === alias);
  return { ...rows, outputs, spreads: rows.spreads.filter(({ alias }) => isOrderedBy(alias)) };
}

export type RowSource =
  | { readonly kind: "table"; readonly name: QualifiedName; readonly through: JunctionJoin | null }
  /** A function of a row of the relation around it. */
  | { readonly kind: "row function"; readonly routine: QualifiedName; readonly row: RowReference }
  | { readonly kind: "call"; readonly call: RoutineCall }
  /** What the statement has changed or called before. */
  | { readonly kind: "result" };

export type JunctionJoin = {
  readonly table: QualifiedName;
  readonly alias: string;
  readonly on: readonly {
    readonly junction: string;
    readonly target: string;
    readonly operatorSchema: string | null;
  }[];
};

/** A whole row; of a result it is put together again, since there it has lost its type. */
export type RowReference = { readonly of: string; readonly as: CompositeRow | null };
export type CompositeRow = { readonly type: QualifiedName; readonly columns: readonly string[] };

export type OutputColumn =
  | { readonly kind: "all" }
  | { readonly kind: "value"; readonly name: string; readonly value: ValueExpression; readonly isAggregate: boolean };

export type ValueExpression =
  | { readonly kind: "column"; readonly of: string; readonly name: string }
  /** Something that every row has, to be counted. */
  | { readonly kind: "one" }
  /** Json and jsonb have steps of their own; other types become jsonb first. */
  | {
      readonly kind: "json";
      readonly of: ValueExpression;
      readonly convert: boolean;
      readonly path: readonly JsonPathStep[];
    }
  /** The function is as the catalogue spells it. */
  | { readonly kind: "represented"; readonly by: string; readonly of: ValueExpression }
  | { readonly kind: "cast"; readonly of: ValueExpression; readonly type: string }
  | { readonly kind: "aggregate"; readonly name: AggregateName; readonly of: ValueExpression | null }
  /** A value of the row, if there is one, that the selection finds. */
  | { readonly kind: "lookup"; readonly value: ValueExpression; readonly from: SelectPlan }
  /** The rows of a relation as JSON. */
  | { readonly kind: "embedded"; readonly form: "object" | "array"; readonly from: SelectPlan };

/** `arrays`: the values of all its rows, one array for each column. */
export type SpreadJoin = {
  readonly alias: string;
  readonly form: "columns" | "arrays";
  readonly subquery: SelectPlan;
};

export type WherePredicate =
  | {
      readonly kind: "compare";
      readonly negated: boolean;
      readonly left: ValueExpression;
      readonly operator: ComparisonName;
      /** Null: Postgres looks for the operator on the search path. */
      readonly operatorSchema: string | null;
      readonly quantifier: OperatorQuantifier | null;
      readonly operand: ParameterOperand;
    }
  | {
      readonly kind: "in";
      readonly negated: boolean;
      readonly left: ValueExpression;
      readonly operatorSchema: string | null;
      readonly operand: ParameterOperand;
    }
  | {
      readonly kind: "is";
      readonly negated: boolean;
      readonly left: ValueExpression;
      readonly value: "null" | "not_null" | "true" | "false" | "unknown";
    }
  | {
      readonly kind: "distinct";
      readonly negated: boolean;
      readonly left: ValueExpression;
      readonly operand: ParameterOperand;
    }
  | {
      readonly kind: "search";
      readonly negated: boolean;
      readonly left: ValueExpression;
      /** The text is not yet one that can be searched. */
      readonly convert: boolean;
      readonly operator: SearchOperator;
      readonly language: string | null;
      readonly operand: ParameterOperand;
    }
  | { readonly kind: "and" | "or"; readonly negated: boolean; readonly parts: readonly WherePredicate[] }
  | {
      readonly kind: "exists";
      readonly negated: boolean;
      readonly selection: SelectPlan;
      readonly and: readonly WherePredicate[];
    }
  | {
      readonly kind: "same";
      readonly left: ValueExpression;
      readonly operatorSchema: string | null;
      readonly right: ValueExpression;
    }
  /** Where the row is to the position that a page begins at: of several columns the first that differs decides. */
  | {
      readonly kind: "position";
      readonly left: readonly ValueExpression[];
      readonly operator: "eq" | "gt" | "lt";
      readonly right: readonly PositionOperand[];
    }
  /** Of what the outputs show of the row. */
  | {
      readonly kind: "digest";
      readonly negated: boolean;
      readonly outputs: readonly OutputColumn[];
      readonly slot: BindParameter;
    }
  /** Among the rows that the function finds is one with this key. */
  | {
      readonly kind: "found";
      readonly negated: boolean;
      readonly key: readonly { readonly name: string; readonly value: ValueExpression }[];
      readonly by: QualifiedName;
      readonly slot: BindParameter;
    }
  /** By the text of policies, whose columns are those of the table itself. */
  | { readonly kind: "permitted"; readonly negated: boolean; readonly text: string }
  /** As an order sees it: a row of nothing but nulls is there, while `is null` holds for it. */
  | { readonly kind: "presence"; readonly left: ValueExpression; readonly present: boolean };

/** Without a function Postgres itself finds the type, from what the value is compared with. */
export type ParameterOperand = { readonly slot: BindParameter; readonly by: string | null };

/** With a type where Postgres would not take that of what it is compared with. */
export type PositionOperand = { readonly slot: BindParameter; readonly type: QualifiedName | null };

export type OrderExpression = Pick<OrderTerm, "direction" | "nulls"> & { readonly value: ValueExpression };

export type RoutineCall = {
  readonly routine: QualifiedName;
  /** What the rows that it gives are called. */
  readonly alias: string;
  /** A value, or values, that are no rows. */
  readonly isScalar: boolean;
  readonly arguments: RoutineArguments;
  /** A row of the table goes before them; null: no row does. */
  readonly row: { readonly table: QualifiedName; readonly alias: string } | null;
};

export type RoutineArguments =
  | { readonly kind: "none" }
  | { readonly kind: "body"; readonly sqlType: string }
  | {
      readonly kind: "each";
      readonly positional: boolean;
      readonly parameters: readonly (RoutineParameter & { readonly slot: BindParameter })[];
    }
  /** Read from a JSON object, or from the first one of an array. */
  | {
      readonly kind: "record";
      readonly alias: string;
      readonly isArray: boolean;
      readonly positional: boolean;
      readonly parameters: readonly RoutineParameter[];
    };

export type RoutineParameter = { readonly name: string; readonly sqlType: string; readonly variadic: boolean };

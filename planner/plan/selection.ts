import type { QualifiedName } from "#catalog";
import type {
  AggregateName,
  BindParameter,
  ComparisonName,
  JsonPathStep,
  OperatorQuantifier,
  OrderTerm,
  SearchedPart,
  SearchOperator,
} from "../intent/intent.ts";

/** An operator, or the function of pg_trgm, as the catalogue names it. */
export type DistanceFunctionName = "<->" | "<+>" | "<=>" | "<#>" | "similarity";

/** One SELECT of the requested rows or of an embedded relation: all names are resolved, no SQL is generated yet. */
export type SelectPlan = {
  readonly source: RowSource;
  /** The alias in the statement. */
  readonly alias: string;
  readonly outputs: readonly OutputColumn[];
  /** Spread relations, whose columns become columns of the row. */
  readonly spreads: readonly SpreadJoin[];
  readonly where: readonly WherePredicate[];
  /** True if rows are grouped by all outputs that are not aggregates. */
  readonly grouped: boolean;
  /** Conditions on groups. */
  readonly having: readonly WherePredicate[];
  /** Selects only the first row of rows with equal values. */
  readonly distinct: readonly ValueExpression[];
  readonly order: readonly OrderExpression[];
  readonly offset: number;
  readonly limit: number | null;
};

export function columnExpression(of: string, name: string): ValueExpression {
  return { kind: "column", of, name };
}

/** The same rows with other outputs. Spread relations are kept if the order uses them. */
export function withOutputs(outputs: readonly OutputColumn[], rows: SelectPlan): SelectPlan {
  const isOrderedBy = (alias: string) => rows.order.some(({ value }) => value.kind === "column" && value.of === alias);
  return { ...rows, outputs, spreads: rows.spreads.filter(({ alias }) => isOrderedBy(alias)) };
}

export type RowSource =
  | { readonly kind: "table"; readonly name: QualifiedName; readonly through: JunctionJoin | null }
  /** A function of the parent row. */
  | { readonly kind: "row function"; readonly routine: QualifiedName; readonly row: RowReference }
  | { readonly kind: "call"; readonly call: RoutineCall }
  /** The result of the write or the call. */
  | { readonly kind: "result" };

type JunctionJoin = {
  readonly table: QualifiedName;
  readonly alias: string;
  readonly on: readonly {
    readonly junction: string;
    readonly target: string;
    readonly operatorSchema: string | null;
  }[];
};

/** A whole row. A row of a result is rebuilt, since it has lost its type there. */
export type RowReference = { readonly of: string; readonly as: CompositeRow | null };
export type CompositeRow = { readonly type: QualifiedName; readonly columns: readonly string[] };

export type OutputColumn =
  | { readonly kind: "all" }
  | { readonly kind: "value"; readonly name: string; readonly value: ValueExpression; readonly isAggregate: boolean };

export type ValueExpression =
  | { readonly kind: "column"; readonly of: string; readonly name: string }
  /** A constant, to count rows. */
  | { readonly kind: "one" }
  /** json and jsonb have path operators; other types are converted to jsonb first. */
  | {
      readonly kind: "json";
      readonly of: ValueExpression;
      readonly convert: boolean;
      readonly path: readonly JsonPathStep[];
    }
  /** The function name is as in the catalogue. */
  | { readonly kind: "represented"; readonly by: string; readonly of: ValueExpression }
  /** A value that the role may read only in its own rows. */
  | { readonly kind: "own value"; readonly by: QualifiedName; readonly key: ValueExpression }
  | { readonly kind: "cast"; readonly of: ValueExpression; readonly type: string }
  | {
      readonly kind: "aggregate";
      readonly name: AggregateName;
      readonly of: ValueExpression | null;
      readonly distinct: boolean;
      /** Null for the search path, since types of extensions have aggregates of their own, such as citext's `min`. */
      readonly schema: "pg_catalog" | null;
    }
  /** A value of the row that the selection finds, if any. */
  | { readonly kind: "lookup"; readonly value: ValueExpression; readonly from: SelectPlan }
  /** The number of rows, without order and range. */
  | { readonly kind: "count"; readonly from: SelectPlan }
  /** The operator or function of that name in the schema. */
  | {
      readonly kind: "distance";
      readonly function: DistanceFunctionName;
      readonly schema: string;
      readonly of: ValueExpression;
      readonly to: { readonly parameter: BindParameter; readonly type: QualifiedName };
    }
  | { readonly kind: "rank"; readonly document: SearchedDocument; readonly words: SearchedWords }
  /** The texts with the words marked. */
  | { readonly kind: "highlight"; readonly texts: readonly ValueExpression[]; readonly words: SearchedWords }
  /** The values of all rows of a relation as one text. */
  | { readonly kind: "joined"; readonly value: ValueExpression; readonly from: SelectPlan }
  /** The rows of a relation as JSON. */
  | { readonly kind: "embedded"; readonly form: "object" | "array"; readonly from: SelectPlan };

/** The parts of a searched document, of which the first counts most. */
export type SearchedDocument = readonly SearchedPart<ValueExpression>[];

export type SearchedWords = {
  readonly operator: SearchOperator;
  readonly language: string | null;
  readonly parameter: BindParameter;
};

/** `arrays`: the values of all rows, one array per column. */
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
      /** Null for the operator on the search path. */
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
      /** Null for the `=` on the search path. */
      readonly operatorSchema: string | null;
      readonly operand: ParameterOperand;
    }
  | {
      readonly kind: "search";
      readonly negated: boolean;
      readonly left: ValueExpression;
      /** True if the value must be converted to tsvector. */
      readonly convert: boolean;
      /** The schema of the function that converts it; null for the search path. */
      readonly schema: "pg_catalog" | null;
      readonly operator: SearchOperator;
      readonly language: string | null;
      readonly operand: ParameterOperand;
    }
  | {
      readonly kind: "found in document";
      readonly negated: boolean;
      readonly document: SearchedDocument;
      readonly words: SearchedWords;
    }
  | { readonly kind: "and" | "or"; readonly negated: boolean; readonly parts: readonly WherePredicate[] }
  | {
      readonly kind: "exists";
      readonly negated: boolean;
      readonly selection: SelectPlan;
      readonly and: readonly WherePredicate[];
    }
  /** The condition is false or null. */
  | { readonly kind: "unmet"; readonly condition: WherePredicate }
  | {
      readonly kind: "same";
      readonly left: ValueExpression;
      readonly operatorSchema: string | null;
      readonly right: ValueExpression;
    }
  /** The row's order relative to the start of the page: the first column that differs decides. */
  | {
      readonly kind: "position";
      readonly left: readonly ValueExpression[];
      readonly operator: "eq" | "gt" | "lt";
      /** Null for the operators on the search path. */
      readonly operatorSchema: string | null;
      readonly right: readonly PositionOperand[];
    }
  /** Compares the digest of the row's outputs. */
  | {
      readonly kind: "digest";
      readonly negated: boolean;
      readonly outputs: readonly OutputColumn[];
      readonly parameter: BindParameter;
    }
  /** The function returns a row with this key. */
  | {
      readonly kind: "found";
      readonly negated: boolean;
      readonly key: readonly { readonly name: string; readonly value: ValueExpression }[];
      readonly by: QualifiedName;
      readonly parameter: BindParameter;
    }
  /** The SQL of the policies, whose columns are the table's own. */
  | { readonly kind: "permitted"; readonly negated: boolean; readonly text: string }
  /** Null or not, as ORDER BY decides it: a row of only nulls is not null, although `is null` is true. */
  | { readonly kind: "presence"; readonly left: ValueExpression; readonly present: boolean };

/** If there is no function and no type, Postgres infers the type from the other operand. */
export type ParameterOperand = {
  readonly parameter: BindParameter;
  readonly reader: string | null;
  readonly type: string | null;
};

/** `type` is set if Postgres would not infer the type of the other operand. */
export type PositionOperand = { readonly parameter: BindParameter; readonly type: QualifiedName | null };

export type OrderExpression = Pick<OrderTerm, "direction" | "nulls"> & { readonly value: ValueExpression };

export type RoutineCall = {
  readonly routine: QualifiedName;
  /** The alias of the returned rows. */
  readonly alias: string;
  /** True if the function returns values that are not rows. */
  readonly isScalar: boolean;
  readonly arguments: RoutineArguments;
  /** The row of a table that is passed as the first argument; null: none. */
  readonly row: { readonly table: QualifiedName; readonly alias: string } | null;
};

export type RoutineArguments =
  | { readonly kind: "none" }
  | { readonly kind: "body"; readonly sqlType: string }
  | {
      readonly kind: "each";
      readonly positional: boolean;
      readonly parameters: readonly (RoutineParameter & { readonly parameter: BindParameter })[];
    }
  /** Members of a JSON object, or of the first object of an array. */
  | {
      readonly kind: "record";
      readonly alias: string;
      readonly isArray: boolean;
      readonly positional: boolean;
      readonly parameters: readonly RoutineParameter[];
    };

export type RoutineParameter = { readonly name: string; readonly sqlType: string; readonly variadic: boolean };

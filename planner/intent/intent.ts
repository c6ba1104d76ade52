import type { DirectRelationship, Relationship } from "#catalog/relationships";
import type { JsonObject } from "#runtime/json";

/**
 * The client's request, independent of the interface. Names are as the client wrote them; they have not been looked
 * up, and values have not been parsed.
 */
export type Intent = ReadIntent | InsertIntent | UpdateIntent | DeleteIntent | CallIntent;

/** `data->a->0->>b`, or a value that is computed from it. */
export type FieldReference = {
  readonly name: string;
  readonly path: readonly JsonPathStep[];
  readonly measure?: Measure;
};
/** All columns: no column has an empty name. */
export const ALL_COLUMNS: FieldReference = { name: "", path: [] };
export type JsonPathStep = { readonly arrow: "->" | "->>"; readonly key: string | number };

/** `distance((0,0))`, `rank(wfts.cats)`: a value that is computed from a field. */
export type Measure = {
  readonly name: DistanceName | SearchResultName;
  /** Null: the search of the request. */
  readonly operation: DistanceOperation | SearchOperation | null;
  /** The column in the text of the parameter, from 1, for error messages. */
  readonly at: number;
};
const DISTANCE_NAMES = ["distance", "l1", "l2", "cosine", "inner", "similarity"] as const;
const SEARCH_RESULT_NAMES = ["rank", "highlight"] as const;
export const MEASURE_NAMES = [...DISTANCE_NAMES, ...SEARCH_RESULT_NAMES] as const;
export type DistanceName = (typeof DISTANCE_NAMES)[number];
type SearchResultName = (typeof SEARCH_RESULT_NAMES)[number];
export type DistanceOperation = { readonly kind: "distance"; readonly name: DistanceName; readonly value: string };

export type AggregateName = "count" | "sum" | "avg" | "min" | "max";

export type SelectItem = SelectedColumn | SelectedRelation;
export type SelectedColumn = {
  readonly kind: "column";
  /** `ALL_COLUMNS` selects all; count() without a column has no field. */
  readonly field: FieldReference | null;
  readonly alias: string | null;
  readonly cast: string | null;
  readonly aggregate: SelectedAggregate | null;
};
export type SelectedAggregate = {
  readonly name: AggregateName;
  readonly cast: string | null;
  /** Equal values count once. */
  readonly distinct?: true;
};
export type SelectedRelation = {
  readonly kind: "relation";
  readonly name: string;
  readonly alias: string | null;
  /** The constraint, column or table that disambiguates relations. */
  readonly hint: string | null;
  /** The relation, if the interface has already looked it up, in any schema. */
  readonly relationship?: DirectRelationship;
  readonly join: "inner" | "left" | null;
  /** Spread: the relation's columns become columns of the parent row. */
  readonly spread: boolean;
  readonly select: readonly SelectItem[];
};

export type RowCondition =
  | {
      readonly kind: "filter";
      readonly field: FieldReference;
      readonly negated: boolean;
      readonly operation: FilterOperation;
    }
  /**
   * A row of the relation, by its name in the select or its own name, meets the condition. A filter on `count`, without such a
   * column, concerns the number of rows.
   */
  | {
      readonly kind: "related";
      readonly relation: string;
      /** The relation, if the interface has already looked it up, as in SelectedRelation. */
      readonly found?: DirectRelationship;
      /** All rows meet the condition, instead of some. */
      readonly every?: true;
      readonly negated: boolean;
      readonly condition: RowCondition;
    }
  | { readonly kind: "row"; readonly negated: boolean; readonly operation: RowOperation }
  /** The texts of these fields together match the words. The first field counts most for the rank. */
  | {
      readonly kind: "search";
      readonly negated: boolean;
      readonly fields: readonly SearchedField[];
      readonly operation: SearchOperation;
    }
  | { readonly kind: "and" | "or"; readonly negated: boolean; readonly conditions: readonly RowCondition[] };

/** A search reads all rows that its relations lead to: many relations would multiply them. */
export const MAX_SEARCHED_RELATIONS = 3;

/** A field of a row, or of all rows that one or more relations lead to. */
export type SearchedField = { readonly relations: readonly SearchedRelation[]; readonly field: FieldReference };
type SearchedRelation = {
  readonly name: string;
  /** The relation, if the interface has already looked it up, as in SelectedRelation. */
  readonly found?: DirectRelationship;
};

/** A value that a search reads. A text has a type of `pg_catalog`; other values are cast to text. */
export type SearchedPart<Value> = { readonly form: "tsvector" | "text" | "json" | "other"; readonly value: Value };

/** An operation whose value is a parameter of the statement. */
export type OperandOperation = FilterOperation | RowOperation | DistanceOperation;

export type FilterOperation =
  | {
      readonly kind: "compare";
      readonly operator: ComparisonName;
      readonly quantifier: OperatorQuantifier | null;
      /** Patterns are in Postgres's syntax: other wildcards have been converted to `%`. */
      readonly value: string;
    }
  | { readonly kind: "in"; readonly values: readonly string[] }
  | { readonly kind: "is"; readonly value: "null" | "not_null" | "true" | "false" | "unknown" }
  | { readonly kind: "isdistinct"; readonly value: string }
  | SearchOperation;

export type SearchOperation = {
  readonly kind: "search";
  readonly operator: SearchOperator;
  readonly language: string | null;
  readonly value: string;
};

/** A condition on a whole row. */
export type RowOperation =
  /** The SHA-256 digest of the selected columns as JSON is one of these, in hexadecimal. */
  | { readonly kind: "digest"; readonly values: readonly string[] }
  /** The row is among the rows that the function returns for the value. */
  | { readonly kind: "found"; readonly by: IntentTarget; readonly value: string }
  /** The policies permit the caller this command on the row. */
  | { readonly kind: "permitted"; readonly command: "update" | "delete" };

export type ComparisonName =
  | "eq"
  | "neq"
  | "gt"
  | "gte"
  | "lt"
  | "lte"
  | "like"
  | "ilike"
  | "match"
  | "imatch"
  | "cs"
  | "cd"
  | "ov"
  | "sl"
  | "sr"
  | "nxr"
  | "nxl"
  | "adj";
export type OperatorQuantifier = "any" | "all";
/** The operators of full-text search. With `prefix`, the last word may be the beginning of a word. */
export const SEARCH_OPERATORS = ["fts", "plfts", "phfts", "wfts", "prefix"] as const;
export type SearchOperator = (typeof SEARCH_OPERATORS)[number];

export type OrderTerm = {
  readonly field: FieldReference;
  /** The field names a relation, whose rows are counted. */
  readonly by?: "count";
  /** The to-one relation of the column, by alias or name. */
  readonly relation: string | null;
  readonly direction: "asc" | "desc" | null;
  readonly nulls: "first" | "last" | null;
};

export type RowRange = { readonly offset: number; readonly limit: number | null };

/** A part of the request for the top-level row (empty path) or for an embedded relation, by alias or name. */
export type WithEmbedPath<T> = { readonly path: readonly string[]; readonly value: T };

/** The rows to return, and their columns. */
export type RowSelection = {
  readonly select: readonly SelectItem[];
  readonly conditions: readonly WithEmbedPath<RowCondition>[];
  /** Conditions on groups: their fields are names of selected columns. */
  readonly having?: readonly WithEmbedPath<RowCondition>[];
  /** Selects only the first row, in the order, of rows with equal values in these fields. */
  readonly distinct?: readonly WithEmbedPath<readonly FieldReference[]>[];
  readonly orders: readonly WithEmbedPath<readonly OrderTerm[]>[];
  readonly ranges: readonly WithEmbedPath<RowRange>[];
};

export type CountMethod = "exact" | "planned" | "estimated";

/** A page by its position in the order instead of by offset, so that concurrent inserts and deletes do not shift it. */
export type CursorPage =
  | { readonly kind: "first" }
  | { readonly kind: "after"; readonly position: CursorPosition }
  /** The cursor cannot be decoded. If a function has a parameter of that name, it need not be a cursor. */
  | { readonly kind: "unreadable" };

/** The end of a page: the order values of its last row, as text. */
export type CursorPosition = {
  /** Identifies the rows and the order for which the position is valid. */
  readonly order: string;
  readonly values: readonly (string | null)[];
};

type IntentTarget = { readonly schema: string; readonly name: string };

export type ReadIntent = {
  readonly kind: "read";
  readonly target: IntentTarget;
  readonly selection: RowSelection;
  readonly count: CountMethod | null;
  readonly page: CursorPage | null;
};

/** Rows to write. The JSON text is passed to Postgres unchanged. */
export type RowPayload = {
  /** JSON text: an array of objects, or one object. */
  readonly json: Buffer;
  /** The columns of the payload: the keys of its first object, or the parameter `columns`. */
  readonly columns: readonly string[];
  readonly isArray: boolean;
  /** The columns that some row lacks; if absent, rows may lack any. */
  readonly incompleteColumns?: readonly string[];
  /** Present if every row has all columns. */
  readonly valueSpans?: JsonValueSpans;
};

/** Positions of the values in a JSON text whose rows all have the same keys in the same order. */
export type JsonValueSpans = {
  readonly keys: readonly string[];
  /** Start and end offsets in turn, row by row, in the order of the keys. */
  readonly spans: Uint32Array;
};

type ReturnedContent = "nothing" | "headers" | "rows";

type WriteIntentBase = {
  readonly target: IntentTarget;
  /** Selects from the written rows; conditions with an empty path choose the rows of update and delete. */
  readonly selection: RowSelection;
  readonly returned: ReturnedContent;
  readonly count: CountMethod | null;
};

export type InsertIntent = WriteIntentBase & {
  readonly kind: "insert";
  readonly payload: RowPayload;
  /** Columns missing in a row get their default instead of null. */
  readonly missingAsDefault: boolean;
  readonly upsert: RowUpsert | null;
  /** True for PUT, which writes the one row that the conditions identify by key. */
  readonly single: boolean;
  /** Inserts these rows, with the rows of other tables in them, instead of those of the payload. */
  readonly nested?: NestedRows | undefined;
};

type RowUpsert = {
  readonly resolution: "merge" | "ignore";
  readonly onConflict: readonly string[] | null;
  /** The columns of the conflict are not set again, which would require the privilege to update them. */
  readonly keepsKey?: true;
};

/** Rows that contain rows of related tables, at any depth: keys that are no columns name relations. */
export type NestedRows = {
  readonly rows: readonly JsonObject[];
  /** True if the rows are the elements of a list, so that paths begin with a position. */
  readonly isList: boolean;
  /** The keys of the top-level rows to use; null: all. */
  readonly columns: readonly string[] | null;
  /** Changes existing rows by their keys, instead of inserting all. */
  readonly update?: NestedUpdate;
  /** The relations of keys that the interface has already looked up, by key. */
  readonly relations?: ReadonlyMap<string, Relationship>;
};

/** `upsert` inserts rows that do not exist, and `replace` also removes those that are not in the payload. */
export type NestedUpdate =
  | { readonly kind: "update" | "upsert" }
  | { readonly kind: "replace"; readonly removes: "delete" | "unlink" };

export type UpdateIntent = WriteIntentBase & {
  readonly kind: "update";
  readonly payload: RowPayload;
  readonly missingAsDefault: boolean;
  /** Each row of the payload updates the rows with the same values in these columns. If absent, the payload's only row updates all rows. */
  readonly key?: readonly string[];
  /** The columns that the payload has operators for. */
  readonly operators?: readonly ColumnOperators[];
  /** The values of the row that the conditions find, and of related rows within it, instead of the payload. */
  readonly nested?: NestedRows | undefined;
  /** A payload without columns changes nothing; with this it returns the rows that the caller may update, otherwise none. */
  readonly returnsUnchangedRows?: true;
};

const NUMBER_OPERATORS = ["$inc", "$mul", "$min", "$max"] as const;
const LIST_OPERATORS = ["$append", "$prepend", "$remove"] as const;
const OBJECT_OPERATORS = ["$merge", "$unset"] as const;
export const UPDATE_OPERATORS = [...NUMBER_OPERATORS, ...LIST_OPERATORS, ...OBJECT_OPERATORS] as const;
export type UpdateOperator = (typeof UPDATE_OPERATORS)[number];

/** Operators that compute the new value of a column from the old one. Rows of the payload have the operand under `operandName`. */
export type ColumnOperators = {
  readonly column: string;
  /** The operators that occur, sorted. */
  readonly operators: readonly UpdateOperator[];
  /** True if all rows have the same operator. Otherwise each row has its name under `operatorName`, and new values under the column's name. */
  readonly isUniform: boolean;
};

export function operandName(column: string, operator: UpdateOperator): string {
  return `${operator} ${column}`;
}

export function operatorName(column: string): string {
  return `$ ${column}`;
}

export type DeleteIntent = WriteIntentBase & { readonly kind: "delete" };

export type CallIntent = {
  readonly kind: "call";
  readonly target: IntentTarget;
  readonly argument: CallArgument;
  readonly selection: RowSelection;
  readonly count: CountMethod | null;
  readonly page: CursorPage | null;
  readonly readOnly: boolean;
  /** The row that is passed as first argument; if absent, none is. */
  readonly row?: { readonly of: IntentTarget; readonly conditions: readonly RowCondition[] };
};

export type CallArgument =
  /** `?a=1&b=2`: a name may be repeated for a variadic parameter. */
  | { readonly kind: "query"; readonly values: readonly (readonly [name: string, value: string])[] }
  /** A JSON object of named arguments, or the body for a function with one unnamed json parameter, unless it was CSV. */
  | { readonly kind: "json"; readonly body: Buffer; readonly names: readonly string[] | null; readonly isCsv?: true }
  /** The unchanged body for a function with one unnamed parameter of the type. */
  | { readonly kind: "raw"; readonly body: Buffer; readonly type: "text" | "xml" | "bytea" };

/** Options of the response that apply to any intent. */
export type ResponseOptions = {
  /** The formats that the client accepts, by preference; the first possible one is used. */
  readonly formats: readonly ResponseFormat[];
  /** False for HEAD: only counts are returned. */
  readonly includesBody: boolean;
  /** The maximum number of rows that may be changed, or returned by a function. */
  readonly maxAffected: number | null;
  /** The setting that keeps the body of a write for statements after it in the transaction. */
  readonly keepsBodyIn?: string;
};

/** `type` is the media type in lower case, as in Content-Type and error messages. */
export type ResponseFormat =
  | { readonly kind: "media"; readonly type: string }
  /** Exactly one row, as a JSON object. */
  | { readonly kind: "object"; readonly type: string; readonly nulls: "kept" | "stripped" }
  | { readonly kind: "array"; readonly type: string; readonly nulls: "stripped" }
  /** Returns Postgres's execution plan for the response in another format. */
  | {
      readonly kind: "plan";
      readonly type: string;
      readonly of: ResponseFormat;
      readonly as: "text" | "json";
      readonly options: readonly ExplainOption[];
    };
export type ExplainOption = "analyze" | "verbose" | "settings" | "buffers" | "wal";

/**
 * The place of a parameter's value in the intent. Plans and queries contain these places instead of values: so no value can
 * become part of a statement's text, and one plan serves all requests of its shape.
 */
export type BindParameter =
  | { readonly kind: "operand"; readonly index: number }
  /** A value of the position at which the page starts. */
  | { readonly kind: "position"; readonly index: number }
  | { readonly kind: "payload" }
  /** The values of one column of all rows of the payload, as an array. */
  | { readonly kind: "column"; readonly name: string; readonly isJson: boolean }
  /** The last value of the argument, or all as an array. */
  | { readonly kind: "argument"; readonly name: string; readonly all: boolean };

import type { DirectRelationship } from "../catalog/relationships.ts";

/**
 * What a client asks, whichever dialect it asked in. Names are as the client wrote them: none has been looked up yet,
 * and no value has been read.
 */
export type Intent = ReadIntent | InsertIntent | UpdateIntent | DeleteIntent | CallIntent;

/** `data->a->0->>b` */
export type FieldReference = { readonly name: string; readonly path: readonly JsonPathStep[] };
/** All columns: no column has an empty name. */
export const ALL_COLUMNS: FieldReference = { name: "", path: [] };
export type JsonPathStep = { readonly arrow: "->" | "->>"; readonly key: string | number };

export type AggregateName = "count" | "sum" | "avg" | "min" | "max";

export type SelectItem = SelectedColumn | SelectedRelation;
export type SelectedColumn = {
  readonly kind: "column";
  /** EVERY_COLUMN stands for all of them; an aggregate without a column, count(), has no field. */
  readonly field: FieldReference | null;
  readonly alias: string | null;
  readonly cast: string | null;
  readonly aggregate: { readonly name: AggregateName; readonly cast: string | null } | null;
};
export type SelectedRelation = {
  readonly kind: "relation";
  readonly name: string;
  readonly alias: string | null;
  /** The constraint, column or table that tells two relations apart. */
  readonly hint: string | null;
  /** Which relation is meant, where the dialect has looked that up itself: in whatever schema. */
  readonly relationship?: DirectRelationship;
  readonly join: "inner" | "left" | null;
  /** The relation's columns become columns of the row around it. */
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
  /** Some row of the relation, named as in the select or as it would be there, meets the condition. */
  | {
      readonly kind: "related";
      readonly relation: string;
      /** As of a selected relation. */
      readonly found?: DirectRelationship;
      readonly negated: boolean;
      readonly condition: RowCondition;
    }
  | { readonly kind: "row"; readonly negated: boolean; readonly operation: RowOperation }
  | { readonly kind: "and" | "or"; readonly negated: boolean; readonly conditions: readonly RowCondition[] };

export type FilterOperation =
  | {
      readonly kind: "compare";
      readonly operator: ComparisonName;
      readonly quantifier: OperatorQuantifier | null;
      /** Patterns are Postgres's own: where a grammar has another wildcard, it has become `%`. */
      readonly value: string;
    }
  | { readonly kind: "in"; readonly values: readonly string[] }
  | { readonly kind: "is"; readonly value: "null" | "not_null" | "true" | "false" | "unknown" }
  | { readonly kind: "isdistinct"; readonly value: string }
  | {
      readonly kind: "search";
      readonly operator: SearchOperator;
      readonly language: string | null;
      readonly value: string;
    };

/** What is asked of a row as a whole. */
export type RowOperation =
  /** As JSON of what is selected it has one of these SHA-256 digests, in hexadecimal digits. */
  | { readonly kind: "digest"; readonly values: readonly string[] }
  /** The function is given the value, and the row is among those that it finds. */
  | { readonly kind: "found"; readonly by: IntentTarget; readonly value: string }
  /** Policies let the caller do this with it. */
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
export type SearchOperator = "fts" | "plfts" | "phfts" | "wfts";

export type OrderTerm = {
  readonly field: FieldReference;
  /** The to-one relation whose column it is, by alias or name. */
  readonly relation: string | null;
  readonly direction: "asc" | "desc" | null;
  readonly nulls: "first" | "last" | null;
};

export type RowRange = { readonly offset: number; readonly limit: number | null };

/** Something that belongs to the row asked for (empty path) or to a relation embedded in it, by alias or name. */
export type WithEmbedPath<T> = { readonly path: readonly string[]; readonly value: T };

/** Which rows, and what of them. */
export type RowSelection = {
  readonly select: readonly SelectItem[];
  readonly conditions: readonly WithEmbedPath<RowCondition>[];
  readonly orders: readonly WithEmbedPath<readonly OrderTerm[]>[];
  readonly ranges: readonly WithEmbedPath<RowRange>[];
};

export type CountMethod = "exact" | "planned" | "estimated";

/** Rows asked for by their place in the order and not by their number: it is the same whatever came and went before them. */
export type CursorPage =
  | { readonly kind: "first" }
  | { readonly kind: "after"; readonly position: CursorPosition }
  /** What was given is no position. A function may have an argument of that name, and then it need not be one. */
  | { readonly kind: "unreadable" };

/** Where a page ended: by what its last row was ordered, as text. */
export type CursorPosition = {
  /** Of which rows and of which order it speaks: in another one it means nothing. */
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

/** Rows to be written. The text of JSON goes to Postgres as it came. */
export type RowPayload = {
  /** JSON text: an array of objects, or one object. */
  readonly json: Buffer;
  /** The columns that the payload names: those of its first object, or of the parameter `columns`. */
  readonly columns: readonly string[];
  readonly isArray: boolean;
  /** Where there is one, it has all of the columns. */
  readonly valueSpans?: JsonValueSpans;
};

/** Rows of a JSON text that all have the same keys in the same order: where each value stands. */
export type JsonValueSpans = {
  readonly keys: readonly string[];
  /** Where values begin and end, by turns: row by row, in the order of the keys. */
  readonly spans: Uint32Array;
};

export type ReturnedContent = "nothing" | "headers" | "rows";

type WriteIntentBase = {
  readonly target: IntentTarget;
  /** What comes back is selected from the rows written; conditions with an empty path choose the rows of update and delete. */
  readonly selection: RowSelection;
  readonly returned: ReturnedContent;
  readonly count: CountMethod | null;
};

export type InsertIntent = WriteIntentBase & {
  readonly kind: "insert";
  readonly payload: RowPayload;
  /** Columns that are absent from a row take their default instead of null. */
  readonly missingAsDefault: boolean;
  readonly upsert: { readonly resolution: "merge" | "ignore"; readonly onConflict: readonly string[] | null } | null;
  /** PUT: the row is the one that the conditions name by its key. */
  readonly single: boolean;
};

export type UpdateIntent = WriteIntentBase & {
  readonly kind: "update";
  readonly payload: RowPayload;
  readonly missingAsDefault: boolean;
  /** A payload without columns gives the rows that the caller may update, and changes none; without this it gives none. */
  readonly returnsUnchangedRows?: true;
};

export type DeleteIntent = WriteIntentBase & { readonly kind: "delete" };

export type CallIntent = {
  readonly kind: "call";
  readonly target: IntentTarget;
  readonly argument: CallArgument;
  readonly selection: RowSelection;
  readonly count: CountMethod | null;
  readonly page: CursorPage | null;
  readonly readOnly: boolean;
  /** The row that the function is given first; without it, it takes none. */
  readonly row?: { readonly of: IntentTarget; readonly conditions: readonly RowCondition[] };
};

export type CallArgument =
  /** `?a=1&b=2`: a name may come more than once, for a variadic parameter. */
  | { readonly kind: "query"; readonly values: readonly (readonly [name: string, value: string])[] }
  /** A JSON object of named arguments, or the whole body for a function of one unnamed json parameter, unless it came as CSV. */
  | { readonly kind: "json"; readonly body: Buffer; readonly names: readonly string[] | null; readonly isCsv?: true }
  /** The body as it is, for a function of one unnamed parameter of the type. */
  | { readonly kind: "raw"; readonly body: Buffer; readonly type: "text" | "xml" | "bytea" };

/** How the answer is to look, whatever was asked. */
export type ResponseOptions = {
  /** What the client accepts, the best first: the first that can be made is made. */
  readonly formats: readonly ResponseFormat[];
  /** False for HEAD: the counts are wanted and not the rows. */
  readonly includesBody: boolean;
  /** More rows than these are not to be changed, or given back by a function. */
  readonly maxAffected: number | null;
};

/** `type` is the media type in lower case, as it is spelled in Content-Type and in refusals. */
export type ResponseFormat =
  | { readonly kind: "media"; readonly type: string }
  /** Exactly one row, as a JSON object. */
  | { readonly kind: "object"; readonly type: string; readonly nulls: "kept" | "stripped" }
  | { readonly kind: "array"; readonly type: string; readonly nulls: "stripped" }
  /** How Postgres would make the answer in another format. */
  | {
      readonly kind: "plan";
      readonly type: string;
      readonly of: ResponseFormat;
      readonly as: "text" | "json";
      readonly options: readonly ExplainOption[];
    };
export type ExplainOption = "analyze" | "verbose" | "settings" | "buffers" | "wal";

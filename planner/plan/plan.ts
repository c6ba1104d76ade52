import {
  baseTypeOf,
  type Catalog,
  type CatalogTable,
  type MediaHandler,
  type QualifiedName,
  type Routine,
} from "#catalog";
import { ApiError } from "#runtime";
import type { ResponseFormat, UpdateOperator } from "../intent/intent.ts";
import type { LegacyTarget } from "./select-tree.ts";
import {
  columnExpression,
  type OutputColumn,
  type RoutineCall,
  type SelectPlan,
  type WherePredicate,
} from "./selection.ts";

export type Plan = ReadPlan | WritePlan | CallPlan;

export type ReadPlan = CommonPlan & {
  readonly kind: "read";
  readonly table: CatalogTable;
  /** True if Postgres's estimate of the number of rows is queried. */
  readonly needsEstimate: boolean;
  /** The ranges of a keyset page to materialize; empty if the rows are read from the table. */
  readonly keptPages: readonly SelectPlan[];
};
export type WritePlan = CommonPlan & {
  readonly kind: "write";
  readonly table: CatalogTable;
  readonly change: ChangePlan;
  readonly result: KeptColumns;
  /** The key columns for the Location of a new row; null if not requested. */
  readonly location: readonly string[] | null;
  /** The setting that also receives the body. */
  readonly keepsBodyIn?: string;
};
export type CallPlan = CommonPlan & {
  readonly kind: "call";
  readonly routine: Routine;
  readonly call: RoutineCall;
  /** Null if the function is called in the FROM clause of the selection. */
  readonly result: KeptColumns | null;
};

type CommonPlan = {
  /** The chosen format. */
  readonly format: ResponseFormat;
  readonly body: BodyPlan;
  readonly rows: SelectPlan;
  /** Absent if there are none. */
  readonly legacyTargets?: readonly LegacyTarget[];
  /** Null if there is no page, or a page by offset. */
  readonly keyset: KeysetPlan | null;
  readonly total: TotalPlan;
  /** True if the transaction can be read-only. */
  readonly readOnly: boolean;
  readonly guards: readonly RowCountGuard[];
};

/** A page by cursor. */
export type KeysetPlan = {
  /** The fingerprint of the order, which its cursors contain. */
  readonly order: string;
  /** The indexes of the operands that the order is computed with; their values are part of the cursors too. */
  readonly operands: readonly number[];
  readonly isFirst: boolean;
  /** All rows, independent of the start of the page. */
  readonly all: SelectPlan;
};

/** The total number of rows: not requested, equal to the page's rows, or counted up to a limit that stands for all larger numbers. */
export type TotalPlan =
  | { readonly kind: "none" }
  | { readonly kind: "page" }
  | { readonly kind: "counted"; readonly max: number | null };

/** The columns of the result that are kept for the selection; names that are no columns are computed. */
export type KeptColumns = { readonly wholeRow: boolean; readonly names: readonly string[] };

/** The change of a table. The conditions of an insert apply to its records, the others to the table. */
export type ChangePlan = { readonly table: QualifiedName; readonly where: readonly WherePredicate[] } & (
  | { readonly kind: "insert"; readonly records: RecordsPlan; readonly conflict: ConflictPlan | null }
  | ({ readonly kind: "update" } & UpdatePlan)
  | { readonly kind: "delete" }
  /** Earlier statements have inserted the rows, which are read by their key, or as they were saved. */
  | {
      readonly kind: "nested insert";
      readonly saved: SavedRows;
      readonly read: "by key" | "as saved";
      /** The columns of the key, or the columns to return. */
      readonly columns: readonly string[];
    }
);

export type UpdatePlan = {
  readonly records: RecordsPlan;
  readonly assignments: readonly AssignmentPlan[];
  /** Null: the records have no key, so all rows get the values of one of them. */
  readonly key: UpdateKeyPlan | null;
  readonly findsUnchanged: boolean;
};

/** Each record changes the rows with its key. */
type UpdateKeyPlan = {
  readonly columns: readonly { readonly name: string; readonly operatorSchema: string | null }[];
  /** An unused name for the position of the record, from 1. */
  readonly position: string;
  /** All columns of the table. */
  readonly tableColumns: readonly string[];
};

export type AssignmentPlan = {
  readonly column: string;
  /** The type in which the operations compute, without domains and lengths. */
  readonly sqlType: string;
  /** Empty: the value of the record column with the same name. */
  readonly operations: readonly ColumnOperationPlan[];
  /** The record column with the name of the operator; null: all records have the only one. */
  readonly operatorColumn: string | null;
};

export type ColumnOperationPlan = {
  readonly operator: UpdateOperator;
  /** The record column. */
  readonly operand: string;
  readonly subject: OperandSubject;
};

/** The kind of values that the column has. */
export type OperandSubject = "number" | "time" | "list" | "json" | "jsonb" | "value";

/** The values of some columns of inserted rows, in the order of the rows, kept in a setting of the transaction. */
export type SavedRows = { readonly setting: string; readonly columns: readonly SavedColumn[] };
type SavedColumn = {
  readonly name: string;
  /** The type without a length: a cast would cut values to the length. */
  readonly sqlType: string;
  readonly operatorSchema: string | null;
};

/** One statement of a nested insert: it inserts the rows of one relation. */
export type NestedInsertPlan = {
  readonly kind: "insert rows";
  readonly table: QualifiedName;
  /** The payload: the values of columns, and in further columns the number of the row and of the rows it belongs to. */
  readonly records: RecordsPlan;
  /** The record column with the number of the row. */
  readonly ordinal: string;
  readonly columns: readonly NestedColumn[];
  readonly links: readonly RowLink[];
  readonly saved: SavedRows;
  /** The saved columns that may not be null, since other rows refer to them. */
  readonly required: readonly string[];
};

/** One statement of a nested update. */
export type NestedChangePlan = NestedRowsPlan &
  (
    | { readonly kind: "update rows"; readonly set: readonly MatchedColumn[] }
    /** Fails if the caller may not read the columns of `read` in the new rows. */
    | { readonly kind: "insert missing rows"; readonly set: readonly MatchedColumn[]; readonly read: readonly string[] }
    /** Fails if a row does not exist. */
    | { readonly kind: "save rows"; readonly saved: SavedRows }
    /** Updates the one row that the conditions find, and saves it. */
    | {
        readonly kind: "update parent";
        readonly set: readonly MatchedColumn[];
        readonly conditions: readonly WherePredicate[];
        readonly saved: SavedRows;
      }
    /** Removes rows of these parents that are not among the records; `columns` refer to the parent, and `matches` to the record. */
    | {
        readonly kind: "remove rows";
        readonly by: "delete" | "unlink";
        readonly parents: readonly number[];
        readonly columns: readonly MatchedColumn[];
      }
  );

type NestedRowsPlan = {
  readonly table: QualifiedName;
  readonly records: RecordsPlan;
  readonly ordinal: string;
  readonly links: readonly RowLink[];
  /** The columns by which rows of the table are those of the payload. */
  readonly matches: readonly MatchedColumn[];
  /** Conditions on the records. */
  readonly where: readonly WherePredicate[];
};

/** A column and its value: from the first linked row that exists, or from the record column of the same name. */
export type MatchedColumn = {
  readonly name: string;
  readonly sqlType: string;
  readonly operatorSchema: string | null;
  readonly sources: readonly { readonly link: RowLink; readonly column: string }[];
};

/** Refers to rows that were inserted before, by their number in a column of the payload. */
export type RowLink = { readonly alias: string; readonly pointer: string; readonly saved: SavedRows };

/** A column of the inserted rows. */
export type NestedColumn = {
  readonly name: string;
  readonly sqlType: string;
  readonly operatorSchema: string | null;
  /** True if a record column of the same name has the client's values. */
  readonly isGiven: boolean;
  /** The default for rows without a link, if no values are given. */
  readonly missingValue: ColumnDefaultPlan | null;
  readonly sources: readonly LinkedValue[];
  /** The record column with the client's value in rows that also have a link: both have to be equal. */
  readonly confirmed: string | null;
};

/** The value of a column from a linked row. */
export type LinkedValue = {
  readonly link: RowLink;
  readonly column: string;
  /** True if some rows have no such link. */
  readonly isOptional: boolean;
};

/** Existing rows with the same values in these columns are merged or ignored. */
export type ConflictPlan = {
  readonly columns: readonly string[];
  readonly resolution: "merge" | "ignore";
  /** The columns of merged rows that get the new values. */
  readonly set: readonly string[];
  /** True if inserted rows are told from merged ones, by a function that is called for each merged row: Citus refuses such functions. */
  readonly countsInserted: boolean;
};

/** The payload as rows with the column types of the table. */
export type RecordsPlan = {
  readonly alias: string;
  readonly isArray: boolean;
  /** One array per column takes a third less time than JSON text, and a quarter of the memory. */
  readonly byColumn: boolean;
  /** The table whose row type the payload is read as: Citus does not pass on a list of columns. */
  readonly rowOf: QualifiedName | null;
  readonly columns: readonly RecordColumn[];
};

export type RecordColumn = {
  readonly name: string;
  readonly sqlType: string;
  /** Null if the values cannot be passed as an array. */
  readonly element: ArrayElementPlan | null;
  /** Reads JSON for types that Postgres writes as JSON but cannot read; null: the type's input function. */
  readonly reader: JsonReader | null;
  /** The value for records without the column; null: null. */
  readonly missingValue: ColumnDefaultPlan | null;
};

/** A function from JSON to the column's domain, or hstore, which clients see as an object. */
export type JsonReader =
  | { readonly kind: "function"; readonly name: string }
  | { readonly kind: "hstore"; readonly schema: string; readonly isList: boolean };

/** The default expression in the catalogue, or the next value of an identity column. */
export type ColumnDefaultPlan =
  | { readonly kind: "expression"; readonly text: string }
  | { readonly kind: "identity"; readonly table: QualifiedName; readonly column: string };

export type ArrayElementPlan = {
  readonly sqlType: string;
  /** The type that the text is cast to. */
  readonly cast: string | null;
  readonly isJson: boolean;
};

/** Fails and rolls back if the number of rows differs from or exceeds this. */
export type RowCountGuard = {
  readonly code: "PGRST115" | "PGRST116" | "PGRST124";
  readonly rows: "exactly" | "at most";
  readonly count: number;
};

export type PlanOptions = {
  /** The caller's role: errors do not disclose objects that it may not see. */
  readonly role: string;
  readonly aggregates: boolean;
  readonly maxRows: number | null;
  /** True if update and delete require a condition. */
  readonly safeWrites: boolean;
  readonly legacyTargetNames: boolean;
  /** True if clients may request execution plans. */
  readonly explainEnabled: boolean;
};

/** The error of a PUT whose payload has another key than the URL. */
export function keyMismatch(): ApiError {
  return new ApiError("invalid", "PGRST115", "Payload values do not match URL in primary key column(s)");
}

export function notOneRow(rows: number): ApiError {
  return new ApiError("notAcceptable", "PGRST116", "Cannot coerce the result to a single JSON object", {
    details: `The result contains ${rows} rows`,
  });
}

export function tooManyRowsAffected(rows: number): ApiError {
  return new ApiError("invalid", "PGRST124", "Query result exceeds max-affected preference constraint", {
    details: `The query affects ${rows} rows`,
  });
}

/** The error of a row in an update by key; positions count from 0. */
export function wrongKey(code: "PGRST197" | "PGRST198", position: number): ApiError {
  const problem = code === "PGRST197" ? "has no key" : "has the key of an earlier one";
  return new ApiError("invalid", code, `The row at position ${position} ${problem}`, {
    details: { path: String(position) },
    hint: "Send one row for each key. Nothing was changed.",
  });
}

/** Responses with more rows are streamed instead of aggregated by Postgres. */
export const MAX_BUFFERED_ROWS = 5_000;

/** The plan of a response that can be streamed row by row. */
export type StreamedPlan = (ReadPlan | CallPlan) & { readonly body: StreamedBody };
type StreamedBody = Extract<BodyPlan, { kind: "csv" } | { kind: "json" }>;

/** Returns null if the response is a single piece or always short. */
export function toStreamedPlan(plan: Plan): StreamedPlan | null {
  // A write is rolled back on a later error, so nothing may be sent before it has ended.
  if (plan.kind === "write" || !plan.readOnly || plan.guards.length > 0 || plan.format.kind === "plan") return null;
  // The cursor is in the headers, which precede the rows.
  if (plan.keyset) return null;
  const { body } = plan;
  const isJson = body.kind === "json" && body.of === "rows";
  if (plan.kind === "read") {
    const total = plan.total.kind === "page" ? COUNT_ALL : plan.total;
    if (body.kind === "csv") return { ...plan, rows: nameAllColumns(plan), body, total };
    return isJson ? { ...plan, body, total } : null;
  }
  // Counting a function's rows beforehand would call it twice.
  return isJson && plan.total.kind !== "page" ? { ...plan, body } : null;
}

/** The count is sent before the last row. */
const COUNT_ALL: TotalPlan = { kind: "counted", max: null };

/** The same plan, limited to one row more than may be buffered. */
export function toProbePlan(plan: Plan): Plan {
  const { limit } = plan.rows;
  return limit !== null && limit <= MAX_BUFFERED_ROWS
    ? plan
    : { ...plan, rows: { ...plan.rows, limit: MAX_BUFFERED_ROWS + 1 } };
}

/** The CSV header precedes the result, so the columns are listed explicitly. */
function nameAllColumns({ rows, table }: ReadPlan): ReadPlan["rows"] {
  const all = [...table.columns.keys()].map(
    (name): OutputColumn => ({ kind: "value", name, value: columnExpression(rows.alias, name), isAggregate: false }),
  );
  return { ...rows, outputs: rows.outputs.flatMap((output) => (output.kind === "all" ? all : [output])) };
}

/** How the statement builds the body from its rows. */
export type BodyPlan =
  | { readonly kind: "none" }
  | { readonly kind: "json"; readonly of: "rows" | "row"; readonly nulls: "kept" | "stripped" }
  /** The value or values of a function that does not return rows. */
  | { readonly kind: "scalar"; readonly of: "values" | "value"; readonly nulls: "kept" | "stripped" }
  | { readonly kind: "csv" }
  | { readonly kind: "geojson"; readonly schema: string }
  /** An aggregate that the database defines for the media type, of rows of a table, of any rows, or of a function's value. */
  | {
      readonly kind: "aggregate";
      readonly routine: QualifiedName;
      readonly of: QualifiedName | "rows" | "value";
      readonly isBinary: boolean;
    }
  /** The result of the function is the body. */
  | { readonly kind: "value"; readonly isBinary: boolean };

type NegotiatedFormat = { readonly format: ResponseFormat; readonly body: BodyPlan };

type FormatOptions = {
  readonly formats: readonly ResponseFormat[];
  /** The table or function; for a function that returns rows of a table, the table. */
  readonly target: QualifiedName;
  /** True if exactly all columns are selected: only then do the rows have the table's row type, which media type handlers take. */
  readonly selectsAll: boolean;
  readonly catalog: Catalog;
  readonly explain: boolean;
};

/** The first format that is available; throws PGRST107 if none is. */
export function negotiateFormat(options: FormatOptions): NegotiatedFormat {
  for (const format of options.formats) {
    const negotiated = makeFormat(format, options);
    if (negotiated) return negotiated;
  }
  const types = options.formats.map(({ type }) => type).join(", ");
  throw new ApiError("notAcceptable", "PGRST107", `None of these media types are available: ${types}`);
}

function makeFormat(format: ResponseFormat, options: FormatOptions): NegotiatedFormat | null {
  switch (format.kind) {
    case "object":
      return { format, body: { kind: "json", of: "row", nulls: format.nulls } };
    case "array":
      return { format, body: { kind: "json", of: "rows", nulls: format.nulls } };
    case "plan": {
      const negotiated = options.explain ? makeFormat(format.of, options) : null;
      return negotiated && { format, body: textOnly(negotiated.body) };
    }
    case "media":
      return makeMediaFormat(format.type.toLowerCase(), options);
  }
}

/** Execution plans are text, even for a binary body. */
function textOnly(body: BodyPlan): BodyPlan {
  return "isBinary" in body ? { ...body, isBinary: false } : body;
}

const ANY_TYPE = "*/*";
const JSON_TYPE = "application/json";

function makeMediaFormat(type: string, { target, selectsAll, catalog }: FormatOptions): NegotiatedFormat | null {
  const find = (mediaType: string, matches: (handler: MediaHandler) => boolean) =>
    catalog.mediaHandlers.find((handler) => handler.mediaType === mediaType && matches(handler));
  const ofTarget = (handler: MediaHandler) => isSameName(handler.table ?? functionName(handler.routine), target);
  const ofAnything = ({ routine, table }: MediaHandler) => routine.kind === "aggregate" && table === null;
  const own = selectsAll ? (find(ANY_TYPE, ofTarget) ?? find(type, ofTarget)) : undefined;
  const handler = own ?? find(type, ofAnything);
  if (handler) return { format: { kind: "media", type: handlerMediaType(handler) }, body: handlerBody(handler) };
  switch (type) {
    case ANY_TYPE:
    case JSON_TYPE:
      return { format: { kind: "media", type: JSON_TYPE }, body: { kind: "json", of: "rows", nulls: "kept" } };
    case "text/csv":
      return { format: { kind: "media", type }, body: { kind: "csv" } };
    case "application/geo+json": {
      const postgis = catalog.extensions.get("postgis");
      return postgis ? { format: { kind: "media", type }, body: { kind: "geojson", schema: postgis.schema } } : null;
    }
    default:
      return null;
  }
}

function functionName(routine: Routine): QualifiedName | null {
  return routine.kind === "function" ? routine : null;
}

function isSameName(a: QualifiedName | null, b: QualifiedName): boolean {
  return a !== null && a.name === b.name && a.schema === b.schema;
}

/** A handler for any type sets the actual type in `response.headers`. */
function handlerMediaType({ mediaType }: MediaHandler): string {
  return mediaType === ANY_TYPE ? "application/octet-stream" : mediaType;
}

function handlerBody({ routine, table }: MediaHandler): BodyPlan {
  const isBinary = baseTypeOf(routine.returns.type).name === "bytea";
  if (routine.kind === "function") return { kind: "value", isBinary };
  return { kind: "aggregate", routine: { schema: routine.schema, name: routine.name }, of: table ?? "rows", isBinary };
}

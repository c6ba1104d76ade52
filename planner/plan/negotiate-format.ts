import { baseTypeOf, type Catalog, type MediaHandler, type QualifiedName, type Routine } from "#catalog";
import { ApiError } from "#runtime";
import type { ResponseFormat } from "../intent.ts";

/** How the statement builds the body from its rows. */
export type BodyPlan =
  | { readonly kind: "none" }
  | { readonly kind: "json"; readonly of: "rows" | "row"; readonly nulls: "kept" | "stripped" }
  /** The value or values of a function that returns no rows. */
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

export type NegotiatedFormat = { readonly format: ResponseFormat; readonly body: BodyPlan };

type FormatOptions = {
  readonly formats: readonly ResponseFormat[];
  /** The table or function; for a function that returns rows of a table, the table. */
  readonly target: QualifiedName;
  /** Whether exactly all columns are selected: only then do the rows have the table's row type, which media type handlers take. */
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

/** The lines of an execution plan are text, also that of a binary body. */
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

/** One that makes any type says which in `response.headers`. */
function handlerMediaType({ mediaType }: MediaHandler): string {
  return mediaType === ANY_TYPE ? "application/octet-stream" : mediaType;
}

function handlerBody({ routine, table }: MediaHandler): BodyPlan {
  const isBinary = baseTypeOf(routine.returns.type).name === "bytea";
  if (routine.kind === "function") return { kind: "value", isBinary };
  return { kind: "aggregate", routine: { schema: routine.schema, name: routine.name }, of: table ?? "rows", isBinary };
}

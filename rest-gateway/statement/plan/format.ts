import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { MediaHandler } from "../../../engine/catalog/media-handlers.ts";
import type { QualifiedName } from "../../../engine/catalog/qualified-name.ts";
import type { Routine } from "../../../engine/catalog/routines.ts";
import { baseTypeOf } from "../../../engine/catalog/types.ts";
import { ApiError } from "../../../engine/errors.ts";
import type { Format } from "../intent.ts";

/** What the statement makes of its rows. */
export type Body =
  | { readonly kind: "none" }
  | { readonly kind: "json"; readonly of: "rows" | "row"; readonly nulls: "kept" | "stripped" }
  /** The value, or the values, of a function that gives no rows. */
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
  /** What the function called gives is the body. */
  | { readonly kind: "value"; readonly isBinary: boolean };

export type Making = { readonly format: Format; readonly body: Body };

type Wish = {
  readonly formats: readonly Format[];
  /** The table, or the function, or the table whose rows a function gives. */
  readonly target: QualifiedName;
  /** All of its columns and nothing else: only then are the rows what a handler of the table knows. */
  readonly selectsAll: boolean;
  readonly catalog: Catalog;
  readonly explain: boolean;
};

/** The first of the formats that can be made. Refuses when there is none (PGRST107). */
export function negotiate(wish: Wish): Making {
  for (const format of wish.formats) {
    const making = make(format, wish);
    if (making) return making;
  }
  const types = wish.formats.map(({ type }) => type).join(", ");
  throw new ApiError(406, "PGRST107", `None of these media types are available: ${types}`);
}

function make(format: Format, wish: Wish): Making | null {
  switch (format.kind) {
    case "object":
      return { format, body: { kind: "json", of: "row", nulls: format.nulls } };
    case "array":
      return { format, body: { kind: "json", of: "rows", nulls: format.nulls } };
    case "plan": {
      const making = wish.explain ? make(format.of, wish) : null;
      return making && { format, body: making.body };
    }
    case "media":
      return makeMedia(format.type.toLowerCase(), wish);
  }
}

const ANY = "*/*";
const JSON_TYPE = "application/json";

function makeMedia(type: string, { target, selectsAll, catalog }: Wish): Making | null {
  const find = (mediaType: string, isRight: (handler: MediaHandler) => boolean) =>
    catalog.mediaHandlers.find((handler) => handler.mediaType === mediaType && isRight(handler));
  const ofTarget = (handler: MediaHandler) => isSame(handler.table ?? nameOfFunction(handler.routine), target);
  const ofAnything = ({ routine, table }: MediaHandler) => routine.kind === "aggregate" && table === null;
  const own = selectsAll ? (find(ANY, ofTarget) ?? find(type, ofTarget)) : undefined;
  const handler = own ?? find(type, ofAnything);
  if (handler) return { format: { kind: "media", type: typeMadeBy(handler) }, body: bodyOf(handler) };
  switch (type) {
    case ANY:
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

function nameOfFunction(routine: Routine): QualifiedName | null {
  return routine.kind === "function" ? routine : null;
}

function isSame(a: QualifiedName | null, b: QualifiedName): boolean {
  return a !== null && a.name === b.name && a.schema === b.schema;
}

/** One that makes any type says which in `response.headers`. */
function typeMadeBy({ mediaType }: MediaHandler): string {
  return mediaType === ANY ? "application/octet-stream" : mediaType;
}

function bodyOf({ routine, table }: MediaHandler): Body {
  const isBinary = baseTypeOf(routine.returns.type).name === "bytea";
  if (routine.kind === "function") return { kind: "value", isBinary };
  return { kind: "aggregate", routine: { schema: routine.schema, name: routine.name }, of: table ?? "rows", isBinary };
}

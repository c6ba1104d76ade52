import type { Collection } from "../../resource/collections.ts";
import type { CollectionField } from "../../resource/fields.ts";
import { fieldNamed, filterNames } from "../../resource/parse/filters.ts";
import { RESERVED_PARAMETERS } from "../../resource/parse/parameters.ts";
import { componentRef, type JsonSchema, type SchemaOfType } from "../json-schema.ts";

const COUNT_SCHEMA: JsonSchema = { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER };

/** Parameters of every collection. */
const SHARED_PARAMETERS = {
  fields: queryParameter("fields", "The fields to return; use dots for fields of related rows", {
    type: "string",
    examples: ["id", "title,author.name"],
  }),
  links: queryParameter("links", "Whether each row has `_links`", {
    type: "boolean",
    default: false,
  }),
  sort: queryParameter("sort", "Fields to sort by, each optionally with `:asc` or `:desc`", {
    type: "string",
    examples: ["created_at:desc,id"],
  }),
  order: queryParameter("order", "The default sort direction", {
    type: "string",
    enum: ["asc", "desc"],
  }),
  page: queryParameter("page", "The page number: from 1 with `limit`, from 0 with `size`", {
    ...COUNT_SCHEMA,
    minimum: 0,
  }),
  limit: queryParameter("limit", "The maximum number of rows", COUNT_SCHEMA),
  size: queryParameter("size", "The maximum number of rows; the response is a page object", COUNT_SCHEMA),
  skip: queryParameter("skip", "The number of rows to skip", COUNT_SCHEMA),
  envelope: queryParameter("envelope", "Whether lists with `skip` and `limit` have an envelope", {
    type: "boolean",
    default: false,
  }),
  ifMatch: headerParameter("If-Match", "Proceed only if the row has this ETag; else 412"),
  ifNoneMatch: headerParameter("If-None-Match", "Proceed only if the row does not have this ETag; else 304"),
  ifModifiedSince: headerParameter("If-Modified-Since", "Return the row only if it has changed since; else 304"),
  ifUnmodifiedSince: headerParameter(
    "If-Unmodified-Since",
    "Proceed only if the row has not changed since; ignored with If-Match",
  ),
  idempotencyKey: {
    ...headerParameter("Idempotency-Key", "A unique key for the change; a retry with the same key does not repeat it"),
    schema: { type: "string", pattern: "^[!-~]{1,255}$" },
  },
  preferLater: {
    ...headerParameter("Prefer", "`respond-async`: queue the request as a task and respond with 202"),
    schema: { type: "string", enum: ["respond-async"] },
  },
} as const;

export type ResourceParameter = keyof typeof SHARED_PARAMETERS;

export function* sharedParameters(): Generator<[string, object]> {
  yield* Object.entries(SHARED_PARAMETERS);
}

export function parameterRefs(...names: readonly ResourceParameter[]): readonly object[] {
  return names.map((name) => componentRef("parameters", name));
}

export const LIST_PARAMETER_REFS = parameterRefs(
  ...(["fields", "links", "sort", "order", "page", "limit", "size", "skip", "envelope", "ifNoneMatch"] as const),
);

/** Filters: fields and references by equality, and search functions. */
export function filterParameters(collection: Collection, typeSchema: SchemaOfType): readonly object[] {
  const names = filterNames(collection).filter((name) => !RESERVED_PARAMETERS.includes(name));
  return names.map((name) => {
    const field = fieldNamed(name, collection);
    if (!field) return queryParameter(name, "The search text", { type: "string" });
    const items = schemaOfText(field, typeSchema);
    const description = `Rows whose ${field.name} ${field.column.baseType.kind === "array" ? "contains" : "equals"} this value`;
    return { ...queryParameter(name, description, { type: "array", items }), style: "form", explode: true };
  });
}

/** Numbers, booleans and enums have their types; any other value is a text that Postgres parses. */
function schemaOfText({ column }: CollectionField, typeSchema: SchemaOfType): JsonSchema {
  const type = column.baseType.kind === "array" ? column.baseType.element : column.type;
  const { type: kind, enum: choices } = typeSchema(type);
  if (choices) return { type: "string", enum: choices };
  return kind === "integer" || kind === "boolean" || kind === "number" ? { type: kind } : { type: "string" };
}

/** The key of a row in a path: one column, or several separated by commas. */
export function keyParameter(name: string, { key }: Collection, typeSchema: SchemaOfType): object {
  const [only, ...others] = key;
  const isOne = only !== undefined && others.length === 0;
  return {
    name,
    in: "path",
    required: true,
    description: isOne ? `The ${only.name} of the row` : `${key.map((field) => field.name).join(",")} of the row`,
    schema: isOne ? schemaOfText(only, typeSchema) : { type: "string" },
  };
}

function queryParameter(name: string, description: string, schema: JsonSchema) {
  return { name, in: "query", description, schema };
}

function headerParameter(name: string, description: string) {
  return { name, in: "header", description, schema: { type: "string" } };
}

import type { Collection } from "../../resource/collections.ts";
import type { CollectionField } from "../../resource/fields.ts";
import { fieldNamed, filterNames } from "../../resource/parse/filters.ts";
import { RESERVED_PARAMETERS } from "../../resource/parse/parameters.ts";
import { componentRef, type JsonSchema, type SchemaOfType } from "../json-schema.ts";

const COUNT_SCHEMA: JsonSchema = { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER };

/** Of rows and lists, whatever the collection. */
const SHARED_PARAMETERS = {
  fields: queryParameter("fields", "The fields that are wanted, those of related rows dotted", {
    type: "string",
    examples: ["id", "title,author.name"],
  }),
  links: queryParameter("links", "Whether each row says under `_links` where it leads", {
    type: "boolean",
    default: false,
  }),
  sort: queryParameter("sort", "Fields to sort by, each with `:asc` or `:desc` if need be", {
    type: "string",
    examples: ["created_at:desc,id"],
  }),
  order: queryParameter("order", "The direction of the fields that have none", {
    type: "string",
    enum: ["asc", "desc"],
  }),
  page: queryParameter("page", "The page: from 1 on with `limit`, from 0 on with `size`", {
    ...COUNT_SCHEMA,
    minimum: 0,
  }),
  limit: queryParameter("limit", "Most rows of the page", COUNT_SCHEMA),
  size: queryParameter("size", "Most rows of the page, which then tells itself as a page object", COUNT_SCHEMA),
  skip: queryParameter("skip", "How many rows to leave out", COUNT_SCHEMA),
  envelope: queryParameter("envelope", "Whether `skip` and `limit` give an envelope", {
    type: "boolean",
    default: false,
  }),
  ifMatch: headerParameter("If-Match", "Only if the row still has this ETag"),
  ifNoneMatch: headerParameter("If-None-Match", "Only if it no longer has this ETag; else 304"),
  ifModifiedSince: headerParameter("If-Modified-Since", "Only if it was changed since then; else 304"),
  ifUnmodifiedSince: headerParameter(
    "If-Unmodified-Since",
    "Only if it was not changed after that; of no interest beside If-Match",
  ),
  idempotencyKey: {
    ...headerParameter(
      "Idempotency-Key",
      "A name of your own for the change: sent again under it, the change is not made again",
    ),
    schema: { type: "string", pattern: "^[!-~]{1,255}$" },
  },
  preferLater: {
    ...headerParameter("Prefer", "`respond-async`: leave it for later, and answer 202 with a task"),
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

/** What chooses rows: fields and what they refer to, by equality, and searches. */
export function filterParameters(collection: Collection, typeSchema: SchemaOfType): readonly object[] {
  const names = filterNames(collection).filter((name) => !RESERVED_PARAMETERS.includes(name));
  return names.map((name) => {
    const field = fieldNamed(name, collection);
    if (!field) return queryParameter(name, "A text to look for", { type: "string" });
    const items = schemaOfText(field, typeSchema);
    const description = `Rows whose ${field.name} is this${field.column.baseType.kind === "array" ? " among others" : ""}`;
    return { ...queryParameter(name, description, { type: "array", items }), style: "form", explode: true };
  });
}

/** What stands in an address is text; numbers, booleans and choices are told, anything else is for Postgres to read. */
function schemaOfText({ column }: CollectionField, typeSchema: SchemaOfType): JsonSchema {
  const type = column.baseType.kind === "array" ? column.baseType.element : column.type;
  const { type: kind, enum: choices } = typeSchema(type);
  if (choices) return { type: "string", enum: choices };
  return kind === "integer" || kind === "boolean" || kind === "number" ? { type: kind } : { type: "string" };
}

/** One row of a collection: a key of one column, or of several with commas between. */
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

import { referTo } from "../openapi/table-document/component-key.ts";
import type { Schema, TypeSchema } from "../openapi/table-document/type-schema.ts";
import type { Collection } from "../resource/collections.ts";
import type { Field } from "../resource/fields.ts";
import { fieldNamed, filterNames } from "../resource/parse/filters.ts";
import { RESERVED } from "../resource/parse/parameters.ts";

const COUNT: Schema = { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER };

/** Of rows and lists, whatever the collection. */
const SHARED = {
  fields: query("fields", "The fields that are wanted, those of related rows dotted", {
    type: "string",
    examples: ["id", "title,author.name"],
  }),
  links: query("links", "Whether each row says under `_links` where it leads", { type: "boolean", default: false }),
  sort: query("sort", "Fields to sort by, each with `:asc` or `:desc` if need be", {
    type: "string",
    examples: ["created_at:desc,id"],
  }),
  order: query("order", "The direction of the fields that have none", { type: "string", enum: ["asc", "desc"] }),
  page: query("page", "The page: from 1 on with `limit`, from 0 on with `size`", { ...COUNT, minimum: 0 }),
  limit: query("limit", "Most rows of the page", COUNT),
  size: query("size", "Most rows of the page, which then tells itself as a page object", COUNT),
  skip: query("skip", "How many rows to leave out", COUNT),
  envelope: query("envelope", "Whether `skip` and `limit` give an envelope", { type: "boolean", default: false }),
  ifMatch: header("If-Match", "Only if the row still has this ETag"),
  ifNoneMatch: header("If-None-Match", "Only if it no longer has this ETag; else 304"),
  ifModifiedSince: header("If-Modified-Since", "Only if it was changed since then; else 304"),
  ifUnmodifiedSince: header(
    "If-Unmodified-Since",
    "Only if it was not changed after that; of no interest beside If-Match",
  ),
  idempotencyKey: {
    ...header(
      "Idempotency-Key",
      "A name of your own for the change: sent again under it, the change is not made again",
    ),
    schema: { type: "string", pattern: "^[!-~]{1,255}$" },
  },
  preferLater: {
    ...header("Prefer", "`respond-async`: leave it for later, and answer 202 with a task"),
    schema: { type: "string", enum: ["respond-async"] },
  },
} as const;

export type SharedParameter = keyof typeof SHARED;

export function* sharedParameters(): Generator<[string, object]> {
  yield* Object.entries(SHARED);
}

export function referToParameters(...names: readonly SharedParameter[]): readonly object[] {
  return names.map((name) => referTo("parameters", name));
}

export const OF_LIST = referToParameters(
  ...(["fields", "links", "sort", "order", "page", "limit", "size", "skip", "envelope", "ifNoneMatch"] as const),
);

/** What chooses rows: fields and what they refer to, by equality, and searches. */
export function filterParameters(collection: Collection, typeSchema: TypeSchema): readonly object[] {
  const names = filterNames(collection).filter((name) => !RESERVED.includes(name));
  return names.map((name) => {
    const field = fieldNamed(name, collection);
    if (!field) return query(name, "A text to look for", { type: "string" });
    const items = schemaOfText(field, typeSchema);
    const description = `Rows whose ${field.name} is this${field.column.baseType.kind === "array" ? " among others" : ""}`;
    return { ...query(name, description, { type: "array", items }), style: "form", explode: true };
  });
}

/** What stands in an address is text; numbers, booleans and choices are told, anything else is for Postgres to read. */
function schemaOfText({ column }: Field, typeSchema: TypeSchema): Schema {
  const type = column.baseType.kind === "array" ? column.baseType.element : column.type;
  const { type: kind, enum: choices } = typeSchema(type);
  if (choices) return { type: "string", enum: choices };
  return kind === "integer" || kind === "boolean" || kind === "number" ? { type: kind } : { type: "string" };
}

/** One row of a collection: a key of one column, or of several with commas between. */
export function keyParameter(name: string, { key }: Collection, typeSchema: TypeSchema): object {
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

function query(name: string, description: string, schema: Schema) {
  return { name, in: "query", description, schema };
}

function header(name: string, description: string) {
  return { name, in: "header", description, schema: { type: "string" } };
}

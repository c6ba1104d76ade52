import type { ErrorBodyShape } from "#http";
import type { Collection, CollectionField } from "#rest-gateway/resource/collections";
import { readComment } from "../document/comments.ts";
import {
  type ComponentReference,
  componentKey,
  componentRef,
  type ErrorStatusOf,
  errorRefs,
  errorResponses,
} from "../document/components.ts";
import {
  defaultValue,
  describeDefault,
  type JsonSchema,
  objectOf,
  orNull,
  type SchemaOfType,
  withMaxLength,
} from "../document/json-schema.ts";
import components from "./components.json" with { type: "json" };

export type ResourceErrorStatus = ErrorStatusOf<typeof components.errors>;

/** Errors that every operation can have. */
const COMMON_STATUSES: readonly ResourceErrorStatus[] = [400, 401, 406, 410, 429, 500, 503, 504];

export function resourceErrorResponses(): Generator<[string, object]> {
  return errorResponses(components.errors, componentRef("schemas", "error"));
}

/** References to the responses of these errors and of those that every operation can have. */
export function resourceErrorRefs(...statuses: readonly ResourceErrorStatus[]): ReturnType<typeof errorRefs> {
  return errorRefs([...new Set([...statuses, ...COMMON_STATUSES])].sort());
}

const CODE: JsonSchema = { type: "string", examples: ["VALIDATION_ERROR"] };
const TEXT: JsonSchema = { type: "string" };
const FAULTS: JsonSchema = {
  type: "array",
  items: { type: "object", properties: { field: TEXT, message: TEXT }, required: ["field", "message"] },
};
const EXTRA_FIELDS = { errors: FAULTS, supportedVersions: { type: "array", items: { type: "integer" } } };

/** The schema of an error body, by the setting ERROR_BODY. */
export function errorSchema(variant: ErrorBodyShape): JsonSchema {
  const codeAndMessage = { code: CODE, message: TEXT };
  switch (variant) {
    case "detail":
      return objectOf({ detail: objectOf(codeAndMessage) }, EXTRA_FIELDS);
    case "flat":
      return objectOf({ error: CODE, message: TEXT, field: { type: ["string", "null"] } }, EXTRA_FIELDS);
    case "spring":
      return objectOf(
        {
          timestamp: { type: "string", format: "date-time" },
          status: { type: "integer" },
          error: objectOf({ ...codeAndMessage, fields: { type: "object", additionalProperties: TEXT } }),
        },
        EXTRA_FIELDS,
      );
    case "nested":
      return objectOf(
        {
          error: objectOf({
            ...codeAndMessage,
            details: FAULTS,
            requestId: TEXT,
            timestamp: { type: "string", format: "date-time" },
            documentation: TEXT,
          }),
        },
        EXTRA_FIELDS,
      );
  }
}

export type PathOperation = { readonly [key: string]: unknown };
export type PathItem = { readonly [method: string]: PathOperation | undefined };

/** Drops methods without an operation. */
export function withoutAbsent(item: PathItem): PathItem {
  return Object.fromEntries(Object.entries(item).filter(([, operation]) => operation !== undefined));
}

type ResourceRowForm = "row" | "create" | "replace" | "update" | "list";

export function rowSchemaRef({ name }: Collection, form: ResourceRowForm): ComponentReference {
  return componentRef("schemas", rowSchemaKey(name, form));
}

function rowSchemaKey(name: string, form: ResourceRowForm): string {
  return `${componentKey(name)}.${form}`;
}

/** Yields the schemas of a row as it is read and written, and of a list. */
export function* rowSchemas(collection: Collection, typeSchema: SchemaOfType): Generator<[string, JsonSchema]> {
  const { name, fields, privileges, description, key } = collection;
  const readable = fields.filter((field) => field.readable);
  const insertable = fields.filter((field) => field.insertable);
  const updatable = fields.filter((field) => field.updatable);
  const replaceable = updatable.filter((field) => !key.includes(field));
  const toObject = (
    form: ResourceRowForm,
    shown: readonly CollectionField[],
    isRequired: (field: CollectionField) => boolean = () => false,
  ): JsonSchema => {
    const required = shown.filter(isRequired).map((field) => field.name);
    return {
      type: "object",
      properties: Object.fromEntries(shown.map((field) => [field.name, fieldSchema(field, form, typeSchema)])),
      ...(required.length > 0 && { required }),
    };
  };
  // Writes return the row too; a caller who may read no column gets an empty object.
  yield [rowSchemaKey(name, "row"), { description: description ?? name, ...toObject("row", readable) }];
  if (privileges.read) yield [rowSchemaKey(name, "list"), listSchema(collection)];
  if (privileges.create)
    yield [rowSchemaKey(name, "create"), toObject("create", insertable, ({ required }) => required)];
  if (!privileges.update) return;
  yield [rowSchemaKey(name, "replace"), toObject("replace", replaceable, needsValue)];
  yield [rowSchemaKey(name, "update"), { ...toObject("update", updatable), minProperties: 0 }];
}

function fieldSchema({ column }: CollectionField, form: ResourceRowForm, typeSchema: SchemaOfType): JsonSchema {
  const value = withMaxLength(typeSchema(column.type), column.maxLength);
  const { text } = readComment(column.comment);
  const byDefault = form === "create" || form === "replace" ? defaultValue(column.default, column.type) : undefined;
  const description = describeDefault(text, byDefault);
  return { ...(column.nullable ? orNull(value) : value), ...(description && { description }) };
}

function needsValue({ column }: CollectionField): boolean {
  return !column.nullable && column.default === null && column.identity === null;
}

const WHOLE_NUMBER: JsonSchema = { type: "integer", minimum: 0 };
const PAGE_LINK: JsonSchema = { type: ["string", "null"] };

/** Returns the schema of a list, whose form follows from the paging parameters. */
function listSchema(collection: Collection): JsonSchema {
  const rows = { type: "array", items: rowSchemaRef(collection, "row") };
  const pages = {
    description: "With `page` and `limit`",
    ...allRequired({
      data: rows,
      pagination: allRequired({
        page: WHOLE_NUMBER,
        limit: WHOLE_NUMBER,
        total: WHOLE_NUMBER,
        totalPages: WHOLE_NUMBER,
      }),
      links: allRequired({ first: PAGE_LINK, prev: PAGE_LINK, next: PAGE_LINK, last: PAGE_LINK }),
    }),
  };
  const window = {
    description: "With `skip` and `limit`",
    ...allRequired({
      data: rows,
      pagination: allRequired({ skip: WHOLE_NUMBER, limit: WHOLE_NUMBER, total: WHOLE_NUMBER }),
    }),
  };
  const slice = {
    description: "With `size`",
    ...allRequired({
      content: rows,
      page: WHOLE_NUMBER,
      size: WHOLE_NUMBER,
      totalElements: WHOLE_NUMBER,
      totalPages: WHOLE_NUMBER,
      first: { type: "boolean" },
      last: { type: "boolean" },
    }),
  };
  return { anyOf: collection.plain ? [rows, pages, window, slice] : [pages, window, slice] };
}

function allRequired(properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return { type: "object", properties, required: Object.keys(properties) };
}

import type { Collection } from "../../resource/collections.ts";
import type { CollectionField } from "../../resource/fields.ts";
import { readComment } from "../comments.ts";
import { type ComponentReference, componentKey, componentRef } from "../components.ts";
import {
  defaultValue,
  describeDefault,
  type JsonSchema,
  orNull,
  type SchemaOfType,
  withMaxLength,
} from "../json-schema.ts";

export type ResourceRowForm = "row" | "create" | "replace" | "update" | "list";

export function rowSchemaRef({ name }: Collection, form: ResourceRowForm): ComponentReference {
  return componentRef("schemas", rowSchemaKey(name, form));
}

function rowSchemaKey(name: string, form: ResourceRowForm): string {
  return `${componentKey(name)}.${form}`;
}

/** The schemas of a row as it is read and written, and of a list. */
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

/** The shape of a list follows from the paging parameters. */
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

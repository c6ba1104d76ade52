import { readComment } from "../openapi/comment.ts";
import { componentKey, type Reference, referTo } from "../openapi/table-document/component-key.ts";
import { defaultValue, describeDefault } from "../openapi/table-document/default-value.ts";
import { orNull, type Schema, type TypeSchema, withMaxLength } from "../openapi/table-document/type-schema.ts";
import type { Collection } from "../resource/collections.ts";
import type { Field } from "../resource/fields.ts";

export type RowForm = "row" | "create" | "replace" | "update" | "list";

export function referToRow({ name }: Collection, form: RowForm): Reference {
  return referTo("schemas", rowSchemaKey(name, form));
}

function rowSchemaKey(name: string, form: RowForm): string {
  return `${componentKey(name)}.${form}`;
}

/** A row as it is read, which has what was asked for, and as it is written; and a list of them. */
export function* rowSchemas(collection: Collection, typeSchema: TypeSchema): Generator<[string, Schema]> {
  const { name, fields, may, description, key } = collection;
  const readable = fields.filter((field) => field.readable);
  const insertable = fields.filter((field) => field.insertable);
  const updatable = fields.filter((field) => field.updatable);
  const replaceable = updatable.filter((field) => !key.includes(field));
  const toObject = (
    form: RowForm,
    shown: readonly Field[],
    isRequired: (field: Field) => boolean = () => false,
  ): Schema => {
    const required = shown.filter(isRequired).map((field) => field.name);
    return {
      type: "object",
      properties: Object.fromEntries(shown.map((field) => [field.name, fieldSchema(field, form, typeSchema)])),
      ...(required.length > 0 && { required }),
    };
  };
  // What is created or changed is told too, to whoever may read nothing as an empty row.
  yield [rowSchemaKey(name, "row"), { description: description ?? name, ...toObject("row", readable) }];
  if (may.read) yield [rowSchemaKey(name, "list"), listSchema(collection)];
  if (may.create) yield [rowSchemaKey(name, "create"), toObject("create", insertable, ({ required }) => required)];
  if (!may.update) return;
  yield [rowSchemaKey(name, "replace"), toObject("replace", replaceable, needsValue)];
  yield [rowSchemaKey(name, "update"), { ...toObject("update", updatable), minProperties: 0 }];
}

function fieldSchema({ column }: Field, form: RowForm, typeSchema: TypeSchema): Schema {
  const value = withMaxLength(typeSchema(column.type), column.maxLength);
  const { text } = readComment(column.comment);
  const byDefault = form === "create" || form === "replace" ? defaultValue(column.default, column.type) : undefined;
  const description = describeDefault(text, byDefault);
  return { ...(column.nullable ? orNull(value) : value), ...(description && { description }) };
}

function needsValue({ column }: Field): boolean {
  return !column.nullable && column.default === null && column.identity === null;
}

const NUMBER: Schema = { type: "integer", minimum: 0 };
const ADDRESS: Schema = { type: ["string", "null"] };

/** What a list looks like follows from the parameters that were used. */
function listSchema(collection: Collection): Schema {
  const rows = { type: "array", items: referToRow(collection, "row") };
  const pages = {
    description: "With `page` and `limit`",
    ...closed({
      data: rows,
      pagination: closed({ page: NUMBER, limit: NUMBER, total: NUMBER, totalPages: NUMBER }),
      links: closed({ first: ADDRESS, prev: ADDRESS, next: ADDRESS, last: ADDRESS }),
    }),
  };
  const window = {
    description: "With `skip` and `limit`",
    ...closed({ data: rows, pagination: closed({ skip: NUMBER, limit: NUMBER, total: NUMBER }) }),
  };
  const slice = {
    description: "With `size`",
    ...closed({
      content: rows,
      page: NUMBER,
      size: NUMBER,
      totalElements: NUMBER,
      totalPages: NUMBER,
      first: { type: "boolean" },
      last: { type: "boolean" },
    }),
  };
  return { anyOf: collection.plain ? [rows, pages, window, slice] : [pages, window, slice] };
}

function closed(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: "object", properties, required: Object.keys(properties) };
}

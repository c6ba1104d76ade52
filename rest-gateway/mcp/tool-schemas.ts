import type { CatalogColumn, Routine } from "#catalog";
import {
  includesAll,
  type JsonSchema,
  makeRowSchemas,
  objectOf,
  orNull,
  type SchemaOfType,
  type VisibleTable,
} from "#rest-gateway/openapi/schemas";

export const ANY_ROW: JsonSchema = { type: "object" };

/** The comparison operators of conditions, by their names in the table interface. */
export const OPERATORS = [
  "eq",
  "neq",
  "gt",
  "gte",
  "lt",
  "lte",
  "like",
  "ilike",
  "in",
  "is",
  "cs",
  "cd",
  "fts",
] as const;

const OPERATOR_HELP =
  "eq, neq, gt, gte, lt, lte: comparison. like, ilike: pattern with * for any text. in: value is a list. is: null, true or false. cs, cd: contains, contained in. fts: full-text search.";

export type NamedColumns = readonly Pick<CatalogColumn, "name">[];

/** Returns the schema of a name from a list; any text if there are very many. */
function nameSchema(columns: NamedColumns): JsonSchema {
  return columns.length > 0 ? { type: "string", enum: columns.map(({ name }) => name) } : { type: "string" };
}

function conditionsSchema(columns: NamedColumns, use: string): JsonSchema {
  const condition = objectOf(
    { column: nameSchema(columns), value: { description: "A string, number, boolean or null; for `in` a list." } },
    { operator: { type: "string", enum: [...OPERATORS], default: "eq", description: OPERATOR_HELP } },
  );
  const items = { ...condition, additionalProperties: false };
  return { type: "array", items, description: `${use} All conditions must hold.` };
}

export function readArguments(columns: NamedColumns, maxRows: number): JsonSchema {
  const order = objectOf({ column: nameSchema(columns) }, { descending: { type: "boolean", default: false } });
  return inputOf(
    {},
    {
      columns: { type: "array", items: nameSchema(columns), description: "Without it: all that you may read." },
      where: conditionsSchema(columns, "Which rows."),
      order: { type: "array", items: { ...order, additionalProperties: false } },
      limit: { type: "integer", minimum: 1, maximum: maxRows, description: `At most ${maxRows} rows.` },
      offset: { type: "integer", minimum: 0, description: "`next_offset` of the page before." },
    },
  );
}

export function insertArguments(row: JsonSchema, maxRows: number): JsonSchema {
  return inputOf({ rows: { type: "array", minItems: 1, maxItems: maxRows, items: row } });
}

export function updateArguments(row: JsonSchema, columns: NamedColumns): JsonSchema {
  return inputOf({
    where: { ...conditionsSchema(columns, "Which rows to change."), minItems: 1 },
    set: { ...row, required: undefined, minProperties: 1, description: "The new values." },
  });
}

export function deleteArguments(columns: NamedColumns): JsonSchema {
  return inputOf({ where: { ...conditionsSchema(columns, "Which rows to delete."), minItems: 1 } });
}

export function inputOf(
  required: Readonly<Record<string, JsonSchema>>,
  optional: Readonly<Record<string, JsonSchema>> = {},
): JsonSchema {
  return { ...objectOf(required, optional), additionalProperties: false };
}

/** The rows of a table as JSON Schemas. */
export type RowSchemas = { readonly row: JsonSchema; readonly insert: JsonSchema; readonly update: JsonSchema };

export function rowSchemasOf(visible: VisibleTable, context: Parameters<typeof makeRowSchemas>[0]): RowSchemas {
  const made = [...makeRowSchemas(context)(visible)].map(([, schema]) => schema);
  // The schemas are in this order, each only if the role has the privilege.
  const next = (verb: "select" | "insert" | "update") => (visible.verbs.has(verb) ? made.shift() : undefined);
  const [row, insert, update] = [next("select"), next("insert"), next("update")];
  const strict = (schema: JsonSchema = ANY_ROW) => ({ ...schema, additionalProperties: false });
  return {
    // A result has the selected columns only.
    row: { ...(row ?? ANY_ROW), required: undefined, description: undefined },
    insert: strict(insert),
    update: strict(update),
  };
}

export function rowsResult(row: JsonSchema): JsonSchema {
  return objectOf({ rows: { type: "array", items: row } }, { next_offset: { type: ["integer", "null"] } });
}

export function writeResult(row: JsonSchema): JsonSchema {
  return objectOf({
    rows: { type: "array", items: row },
    count: { type: ["integer", "null"], description: "How many rows." },
  });
}

export const CALL_RESULT: JsonSchema = objectOf({ result: {} });

export function routineArguments({ arguments: parameters }: Routine, typeSchema: SchemaOfType): JsonSchema {
  const named = parameters.filter(({ name }) => name !== null);
  const properties = named.map(({ name, type }) => [name, orNull(typeSchema(type))] as const);
  return {
    type: "object",
    properties: Object.fromEntries(properties),
    required: named.filter(({ required }) => required).map(({ name }) => name!),
    additionalProperties: false,
  };
}

/** Returns the text of CHECK constraints of visible columns, which tells which values a table accepts. */
export function checkTexts({ table, columns: visible }: VisibleTable): readonly string[] {
  return table.checks.flatMap(({ expression, columns }) =>
    expression !== null && expression.length <= 200 && includesAll(visible, columns) ? [expression] : [],
  );
}

const STANDARD_FORMATS: readonly unknown[] = ["date", "date-time", "uuid"];
const MAY_BE_NO_NUMBER: readonly unknown[] = ["decimal", "float", "double"];

/** Removes formats that JSON Schema does not have, since validators warn of them. */
export function toInputSchema(schema: JsonSchema): JsonSchema {
  return transform(schema, ({ format, ...rest }) => (STANDARD_FORMATS.includes(format) ? { ...rest, format } : rest));
}

/** Loosens a schema for results, which clients check: dates may be `infinity`, and numbers `"NaN"`. */
export function toResultSchema(schema: JsonSchema): JsonSchema {
  return transform(schema, ({ format, ...rest }) => {
    return MAY_BE_NO_NUMBER.includes(format) ? { ...rest, type: [rest.type, "string"].flat() } : rest;
  });
}

/** Changes each schema that has a format within a schema. A column may be named `format`: then `format` is a schema. */
function transform(schema: JsonSchema, change: (schema: JsonSchema) => JsonSchema): JsonSchema {
  return JSON.parse(JSON.stringify(schema), (_key, value) =>
    typeof value?.format === "string" ? change(value) : value,
  );
}

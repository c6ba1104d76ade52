import { exposedSchemas } from "../../../engine/catalog/catalog.ts";
import { readComment } from "../comments.ts";
import { type ComponentReference, componentKey, componentRef } from "../json-schema.ts";
import type { TableDocumentOptions, VisibleTable } from "../visible-schema.ts";

/** Reserved parameter names: a column with such a name cannot be a filter, nor an argument be passed by GET. */
export const RESERVED_NAMES: ReadonlySet<string> = new Set([
  "select",
  "order",
  "limit",
  "offset",
  "and",
  "or",
  "not.and",
  "not.or",
  "columns",
  "on_conflict",
]);

const FILTER_SCHEMA = componentRef("schemas", "rest.filter");
const WHOLE_NUMBER = { type: "integer", minimum: 0 };

const PREFERENCES = {
  count: ["count=exact", "count=planned", "count=estimated"],
  returned: ["return=minimal", "return=headers-only", "return=representation"],
  resolution: ["resolution=merge-duplicates", "resolution=ignore-duplicates"],
  missing: ["missing=default", "missing=null"],
  handling: ["handling=strict", "handling=lenient"],
  end: ["tx=commit", "tx=rollback"],
};
const { count, returned, resolution, missing, handling, end } = PREFERENCES;
const TIMEZONE = "^timezone=.+$";
const MAX_AFFECTED = "^max-affected=\\d+$";

const SHARED_PARAMETERS = {
  select: queryParameter("select", "Columns and relations: `id,name:title,price::text,author(name)`"),
  order: queryParameter("order", "`created_at.desc.nullslast,id`"),
  limit: { ...queryParameter("limit", "The maximum number of rows"), schema: WHOLE_NUMBER },
  offset: { ...queryParameter("offset", "The number of rows to skip"), schema: WHOLE_NUMBER },
  cursor: {
    ...queryParameter(
      "cursor",
      "The cursor from the `Link` of the page before; empty for the first page. Requires limit",
    ),
    allowEmptyValue: true,
  },
  and: queryParameter("and", "All conditions must hold: `(age.gt.18,or(name.eq.Ann,name.is.null))`"),
  or: queryParameter("or", "At least one condition must hold: `(age.lt.18,age.gt.65)`"),
  columns: queryParameter("columns", "The columns to write; other fields of the body are ignored"),
  on_conflict: queryParameter("on_conflict", "The columns of the unique key that detects existing rows"),
  range: headerParameter("Range", "The first and the last row, counted from 0: `0-24`"),
  rangeUnit: { ...headerParameter("Range-Unit", "The unit of Range"), schema: { type: "string", default: "items" } },
  idempotencyKey: {
    ...headerParameter("Idempotency-Key", "A unique key for the change; a retry with the same key does not repeat it"),
    schema: { type: "string", minLength: 1, maxLength: 255 },
  },
  preferRead: preferParameter([...count, ...handling], [TIMEZONE]),
  preferInsert: preferParameter([...returned, ...resolution, ...missing, ...count, ...handling, ...end], [TIMEZONE]),
  preferUpdate: preferParameter([...returned, ...missing, ...count, ...handling, ...end], [TIMEZONE, MAX_AFFECTED]),
  preferDelete: preferParameter([...returned, ...count, ...handling, ...end], [TIMEZONE, MAX_AFFECTED]),
  preferCall: preferParameter([...count, ...handling, ...end], [TIMEZONE, MAX_AFFECTED]),
};

type TableParameter = keyof typeof SHARED_PARAMETERS;

export function* sharedParameters({ schema }: Pick<TableDocumentOptions, "schema">): Generator<[string, object]> {
  yield* Object.entries(SHARED_PARAMETERS);
  for (const name of ["Accept-Profile", "Content-Profile"]) {
    const parameter = headerParameter(name, "The schema of the request");
    yield [profileKey(name), { ...parameter, required: true, schema: { type: "string", const: schema } }];
  }
}

export function* rowFilters({ table, selectable }: VisibleTable): Generator<[string, object]> {
  for (const { name, comment } of selectable) {
    if (RESERVED_NAMES.has(name)) continue;
    const description = readComment(comment).text;
    yield [rowFilterKey(table.name, name), { name, in: "query", description, schema: FILTER_SCHEMA }];
  }
}

export function sharedRefs(...names: readonly TableParameter[]): ComponentReference[] {
  return names.map((name) => componentRef("parameters", name));
}

export function rowFilterRefs(table: string, columns: readonly { readonly name: string }[]): ComponentReference[] {
  return columns
    .filter(({ name }) => !RESERVED_NAMES.has(name))
    .map(({ name }) => componentRef("parameters", rowFilterKey(table, name)));
}

/** A column or argument named cursor takes precedence over the parameter. */
export function cursorRefs(names: Iterable<string>): ComponentReference[] {
  return new Set(names).has("cursor") ? [] : sharedRefs("cursor");
}

/** The header that selects the schema; the default schema needs none. */
export function profileRefs(
  { catalog, schema }: Pick<TableDocumentOptions, "catalog" | "schema">,
  name: "Accept-Profile" | "Content-Profile",
): ComponentReference[] {
  const [first] = exposedSchemas(catalog);
  return first?.name === schema ? [] : [componentRef("parameters", profileKey(name))];
}

function profileKey(name: string): string {
  return name === "Accept-Profile" ? "acceptProfile" : "contentProfile";
}

function rowFilterKey(table: string, column: string): string {
  return `rowFilter.${componentKey(table)}.${componentKey(column)}`;
}

function queryParameter(name: string, description: string) {
  return { name, in: "query", description, schema: { type: "string" } };
}

function headerParameter(name: string, description: string) {
  return { name, in: "header", description, schema: { type: "string" } };
}

function preferParameter(words: readonly string[], patterns: readonly string[]) {
  const anyOf = [{ enum: words }, ...patterns.map((pattern) => ({ pattern }))];
  return {
    ...headerParameter("Prefer", "Preferences, separated by commas"),
    schema: { type: "array", items: { type: "string", anyOf } },
  };
}

import { type Catalog, type CatalogColumn, exposedSchemas } from "#catalog";
import { makeColumnDescriber, readComment } from "../document/comments.ts";
import {
  type ComponentReference,
  componentKey,
  componentRef,
  type ErrorStatusOf,
  errorRefs,
  errorResponses,
} from "../document/components.ts";
import {
  columnSchema,
  defaultValue,
  describeDefault,
  type JsonSchema,
  type SchemaOfType,
} from "../document/json-schema.ts";
import type { TableDocumentOptions, VisibleSchema, VisibleTable } from "../document/visible-schema.ts";
import components from "./components.json" with { type: "json" };

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
type TableParameter = keyof typeof components.parameters;

export function* sharedParameters({ schema }: Pick<TableDocumentOptions, "schema">): Generator<[string, object]> {
  yield* Object.entries(components.parameters);
  for (const name of ["Accept-Profile", "Content-Profile"]) {
    const parameter = { name, in: "header", description: "The schema of the request" };
    yield [profileKey(name), { ...parameter, schema: { type: "string", const: schema }, required: true }];
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

/** Returns references to these parameters, except those whose name a column or argument has, which takes precedence. */
export function unreservedRefs(
  names: Iterable<string>,
  ...parameters: readonly TableParameter[]
): ComponentReference[] {
  const taken = new Set(names);
  return sharedRefs(...parameters.filter((name) => !taken.has(name)));
}

/** Returns the header that selects the schema; the default schema needs none. */
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

const COMMON_HEADERS = {
  "Content-Range": componentRef("headers", "contentRange"),
  "Preference-Applied": componentRef("headers", "preferenceApplied"),
};

/** The response without a body, shared by all operations. */
export const EMPTY_RESPONSE: readonly [string, object] = [
  "done",
  { description: "Done; no content", headers: COMMON_HEADERS },
];
export const EMPTY_RESPONSE_REF = componentRef("responses", EMPTY_RESPONSE[0]);

const TAG_HEADER = { ETag: componentRef("headers", "etag") };
/** The response to a read with If-None-Match. */
export const UNCHANGED_RESPONSE: readonly [string, object] = [
  "unchanged",
  { description: "The client has these rows", headers: TAG_HEADER },
];
export const UNCHANGED_RESPONSE_REF = componentRef("responses", UNCHANGED_RESPONSE[0]);

const READ_HEADERS = { ...COMMON_HEADERS, ...TAG_HEADER, Link: componentRef("headers", "link") };
const WRITTEN_RESPONSE = {
  description: "Written",
  headers: { ...COMMON_HEADERS, ...TAG_HEADER, Location: componentRef("headers", "location") },
};

type ResponseContext = { readonly viewer: VisibleSchema; readonly catalog: Catalog };

/** Yields the responses with rows; none for roles that may not select. */
export function* tableResponses(visible: VisibleTable, context: ResponseContext): Generator<[string, object]> {
  const { table, verbs } = visible;
  if (!verbs.has("select")) return;
  const content = rowsContent(visible, context);
  yield [`rows.${componentKey(table.name)}`, { description: "The rows", headers: READ_HEADERS, content }];
  if (!verbs.has("insert")) return;
  yield [
    `written.${componentKey(table.name)}`,
    { ...WRITTEN_RESPONSE, description: "Written; with the rows if requested", content },
  ];
}

export function rowsRef({ table }: VisibleTable): ComponentReference {
  return componentRef("responses", `rows.${componentKey(table.name)}`);
}

export function writtenRef({ table, verbs }: VisibleTable): object {
  return verbs.has("select") ? componentRef("responses", `written.${componentKey(table.name)}`) : WRITTEN_RESPONSE;
}

/** The variant of rows for `nulls=stripped`, without null members. */
const WITHOUT_NULLS = {
  "application/vnd.pgrst.array+json;nulls=stripped": { schema: { type: "array", items: { type: "object" } } },
  "application/vnd.pgrst.object+json;nulls=stripped": { schema: { type: "object" } },
};

function rowsContent({ table }: VisibleTable, { viewer, catalog }: ResponseContext): object {
  const row = rowRef(table.name, "row");
  const ownTypes = catalog.mediaHandlers
    .filter(({ mediaType, routine, table: only }) => {
      const isForRows = routine.kind === "aggregate" && mediaType !== "*/*" && viewer.mayCall(routine);
      return isForRows && (!only || catalog.findTable(only) === table);
    })
    .map(({ mediaType }) => [mediaType, { schema: { type: "string" } }]);
  return {
    "application/json": { schema: { type: "array", items: row } },
    "application/vnd.pgrst.object+json": { schema: row },
    ...WITHOUT_NULLS,
    "text/csv": { schema: { type: "string" } },
    ...(catalog.extensions.has("postgis") && { "application/geo+json": { schema: { type: "object" } } }),
    ...Object.fromEntries(ownTypes),
  };
}

export type TableErrorStatus = ErrorStatusOf<typeof components.errors>;

export function tableErrorResponses(): Generator<[string, object]> {
  return errorResponses(components.errors, componentRef("schemas", "rest.error"));
}

/** Returns references to the responses of these errors and of any other one. */
export function tableErrorRefs(...statuses: readonly TableErrorStatus[]): ReturnType<typeof errorRefs> {
  return errorRefs([...statuses, "default"]);
}

type TableRowForm = "row" | "insert" | "update" | "operators" | "nestedInsert" | "nestedUpdate";

export function rowSchemaKey(table: string, form: TableRowForm): string {
  return form === "row" ? componentKey(table) : `${componentKey(table)}.${form}`;
}

export function rowRef(table: string, form: TableRowForm): ComponentReference {
  return componentRef("schemas", rowSchemaKey(table, form));
}

export type RowSchemaContext = {
  readonly viewer: VisibleSchema;
  readonly catalog: Catalog;
  readonly typeSchema: SchemaOfType;
};

/** Makes the schemas of a row: as read without `select`, and as written. */
export function makeRowSchemas({ viewer, catalog, typeSchema }: RowSchemaContext) {
  return function* ({
    table,
    verbs,
    selectable,
    insertable,
    updatable,
  }: VisibleTable): Generator<[string, JsonSchema]> {
    const describe = makeColumnDescriber(table, viewer, catalog);
    const values = new Map<CatalogColumn, JsonSchema>();
    const valueSchemaOf = (column: CatalogColumn): JsonSchema => {
      const cached = values.get(column);
      if (cached) return cached;
      const schema = columnSchema(column, typeSchema);
      values.set(column, schema);
      return schema;
    };
    const schemaOf = (column: CatalogColumn, form: TableRowForm): JsonSchema => {
      const byDefault = form === "update" ? undefined : defaultValue(column.default, column.type);
      return form === "insert"
        ? { ...valueSchemaOf(column), description: describeDefault(describe(column), byDefault) }
        : { ...valueSchemaOf(column), default: byDefault, description: describe(column) };
    };
    const toObject = (
      form: TableRowForm,
      columns: readonly CatalogColumn[],
      isRequired: (column: CatalogColumn) => boolean = () => false,
    ): JsonSchema => ({
      type: "object",
      properties: Object.fromEntries(columns.map((column) => [column.name, schemaOf(column, form)])),
      required: nonEmpty(columns.filter(isRequired).map(({ name }) => name)),
    });
    const { text } = readComment(table.comment);
    if (verbs.has("select")) {
      yield [rowSchemaKey(table.name, "row"), { description: text, ...toObject("row", selectable, () => true) }];
    }
    if (verbs.has("insert")) {
      const isRequired = (column: CatalogColumn) => needsValue(column, catalog);
      yield [rowSchemaKey(table.name, "insert"), toObject("insert", writableColumns(insertable, catalog), isRequired)];
    }
    if (verbs.has("update")) {
      yield [rowSchemaKey(table.name, "update"), toObject("update", writableColumns(updatable, catalog))];
    }
  };
}

/** Finds the table column that a view column shows; null for expressions and unknown tables. */
function findOrigin(column: CatalogColumn, catalog: Catalog): CatalogColumn | null {
  if (!column.origin) return null;
  const origin = catalog.findTable(column.origin.table)?.columns.get(column.origin.column);
  return origin?.origin ? findOrigin(origin, catalog) : (origin ?? null);
}

export function writableColumns(columns: readonly CatalogColumn[], catalog: Catalog): CatalogColumn[] {
  return columns.filter((column) => {
    const { generated, identity } = findOrigin(column, catalog) ?? column;
    return generated === null && identity !== "always";
  });
}

/** Returns true if the column is required. A view column has the default of its table column; if that is unknown, it is optional. */
export function needsValue(column: CatalogColumn, catalog: Catalog): boolean {
  if (column.nullable || column.default !== null) return false;
  const stored = column.origin ? findOrigin(column, catalog) : column;
  return stored !== null && stored.default === null && stored.identity === null && stored.generated === null;
}

export function nonEmpty<Item>(items: readonly Item[]): readonly Item[] | undefined {
  return items.length > 0 ? items : undefined;
}

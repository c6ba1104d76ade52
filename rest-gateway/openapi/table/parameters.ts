import { exposedSchemas } from "../../../engine/catalog/catalog.ts";
import { readComment } from "../comments.ts";
import { type ComponentReference, componentKey, componentRef } from "../components.ts";
import type { TableDocumentOptions, VisibleTable } from "../visible-schema.ts";
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

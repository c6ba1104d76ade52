import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { CatalogColumn } from "../../../engine/catalog/tables.ts";
import { makeColumnDescriber, readComment } from "../comments.ts";
import { type ComponentReference, componentKey, componentRef } from "../components.ts";
import {
  defaultValue,
  describeDefault,
  type JsonSchema,
  orNull,
  type SchemaOfType,
  withMaxLength,
} from "../json-schema.ts";
import type { VisibleSchema, VisibleTable } from "../visible-schema.ts";

export type TableRowForm = "row" | "insert" | "update";

function rowSchemaKey(table: string, form: TableRowForm): string {
  return form === "row" ? componentKey(table) : `${componentKey(table)}.${form}`;
}

export function rowRef(table: string, form: TableRowForm): ComponentReference {
  return componentRef("schemas", rowSchemaKey(table, form));
}

type RowSchemaContext = {
  readonly viewer: VisibleSchema;
  readonly catalog: Catalog;
  readonly typeSchema: SchemaOfType;
};

/** The schemas of a row: as read without `select`, and as written. */
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
      const value = withMaxLength(typeSchema(column.type), column.maxLength);
      const schema = column.nullable ? orNull(value) : value;
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
    const originOf = (column: CatalogColumn) => findOrigin(column, catalog);
    const writable = (columns: readonly CatalogColumn[]) =>
      columns.filter((column) => isWritable(originOf(column) ?? column));

    if (verbs.has("select")) {
      yield [rowSchemaKey(table.name, "row"), { description: text, ...toObject("row", selectable, () => true) }];
    }
    if (verbs.has("insert")) {
      const isRequired = (column: CatalogColumn) => needsValue(column, originOf(column));
      yield [rowSchemaKey(table.name, "insert"), toObject("insert", writable(insertable), isRequired)];
    }
    if (verbs.has("update")) {
      yield [rowSchemaKey(table.name, "update"), toObject("update", writable(updatable))];
    }
  };
}

/** The table column that a view column shows; null for expressions and unknown tables. */
function findOrigin(column: CatalogColumn, catalog: Catalog): CatalogColumn | null {
  if (!column.origin) return null;
  const origin = catalog.findTable(column.origin.table)?.columns.get(column.origin.column);
  return origin?.origin ? findOrigin(origin, catalog) : (origin ?? null);
}

function isWritable({ generated, identity }: CatalogColumn): boolean {
  return generated === null && identity !== "always";
}

/** A view column has the default of its table column; if that is unknown, it is not required. */
function needsValue(column: CatalogColumn, origin: CatalogColumn | null): boolean {
  if (column.nullable || column.default !== null) return false;
  const stored = column.origin ? origin : column;
  return stored !== null && stored.default === null && stored.identity === null && stored.generated === null;
}

function nonEmpty<Item>(items: readonly Item[]): readonly Item[] | undefined {
  return items.length > 0 ? items : undefined;
}

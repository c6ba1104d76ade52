import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { CatalogColumn, CatalogTable } from "../../engine/catalog/tables.ts";
import { comparabilityOf } from "../../engine/catalog/types.ts";
import { findRepresentation } from "../../engine/statement/plan/scope.ts";
import { commentTags, fieldNamingOf } from "./naming.ts";

/** A column as a client knows it, and what the role may do with it. */
export type CollectionField = {
  readonly name: string;
  readonly column: CatalogColumn;
  readonly readable: boolean;
  /** By POST, and by PUT and PATCH. */
  readonly insertable: boolean;
  readonly updatable: boolean;
  /** Has to be given when a row is made. */
  readonly required: boolean;
  readonly filterable: boolean;
  readonly sortable: boolean;
  /** Whether the database has a function that reads what clients send as the column's domain: only that one can judge it. */
  readonly isReadByFunction: { readonly text: boolean; readonly json: boolean };
};

type FieldAudience = { readonly catalog: Catalog; readonly role: string; readonly version: number };

/** All of the table that the version knows of, in the order of the columns, whether or not the role may do anything with them. */
export function fieldsOf(table: CatalogTable, { catalog, role, version }: FieldAudience): readonly CollectionField[] {
  const spell = fieldNamingOf(version);
  const taken = new Set(table.columns.keys());
  return [...table.columns.values()].filter((column) => isOfVersion(column, version)).map(toField);

  /** A column keeps its own name where another one bears the name that it would be given. */
  function nameOf({ name }: CatalogColumn): string {
    const wanted = spell(name);
    if (wanted === name || taken.has(wanted)) return name;
    taken.add(wanted);
    return wanted;
  }

  function toField(column: CatalogColumn): CollectionField {
    const mayUse = (verb: "select" | "insert" | "update") => catalog.hasPrivilege(role, verb, table, column.name);
    const isWritable = column.generated === null && column.identity !== "always";
    const readable = mayUse("select");
    const insertable = table.insertable && isWritable && mayUse("insert");
    const comparison = comparabilityOf(column.baseType);
    const hasDefault = column.default !== null || column.identity !== null || column.generated !== null;
    return {
      name: nameOf(column),
      column,
      readable,
      insertable,
      updatable: table.updatable && isWritable && mayUse("update"),
      required: insertable && !column.nullable && !hasDefault,
      // A row among the parameters has no type by itself.
      filterable: readable && column.baseType.kind !== "composite" && comparison !== "none",
      sortable: readable && comparison === "order",
      isReadByFunction: {
        text: findRepresentation(catalog, "text", column.sqlType) !== null,
        json: findRepresentation(catalog, "json", column.sqlType) !== null,
      },
    };
  }
}

/** `@since 2`: a field that clients of an earlier version do not know of. */
function isOfVersion({ comment }: CatalogColumn, version: number): boolean {
  const [since] = commentTags(comment).get("since") ?? [];
  return since === undefined || Number(since) <= version;
}

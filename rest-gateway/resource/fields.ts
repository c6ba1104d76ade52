import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Column } from "../../engine/catalog/columns.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import { baseTypeOf, type DataType } from "../../engine/catalog/types.ts";
import { commentTags } from "./comment-tags.ts";
import { namingOf } from "./naming.ts";

/** A column as a client knows it, and what the role may do with it. */
export type Field = {
  readonly name: string;
  readonly column: Column;
  readonly readable: boolean;
  /** By POST, and by PUT and PATCH. */
  readonly insertable: boolean;
  readonly updatable: boolean;
  /** Has to be given when a row is made. */
  readonly required: boolean;
  readonly filterable: boolean;
  readonly sortable: boolean;
};

type Audience = { readonly catalog: Catalog; readonly role: string; readonly version: number };

/** All of the table that the version knows of, in the order of the columns, whether or not the role may do anything with them. */
export function fieldsOf(table: Table, { catalog, role, version }: Audience): readonly Field[] {
  const spell = namingOf(version);
  const taken = new Set(table.columns.keys());
  return [...table.columns.values()].filter((column) => isOfVersion(column, version)).map(toField);

  /** A column keeps its own name where another one bears the name that it would be given. */
  function nameOf({ name }: Column): string {
    const wanted = spell(name);
    if (wanted === name || taken.has(wanted)) return name;
    taken.add(wanted);
    return wanted;
  }

  function toField(column: Column): Field {
    const mayUse = (verb: "select" | "insert" | "update") => catalog.mayRole(role, verb, table, column.name);
    const isWritable = column.generated === null && column.identity !== "always";
    const readable = mayUse("select");
    const insertable = table.insertable && isWritable && mayUse("insert");
    const hasDefault = column.default !== null || column.identity !== null || column.generated !== null;
    return {
      name: nameOf(column),
      column,
      readable,
      insertable,
      updatable: table.updatable && isWritable && mayUse("update"),
      required: insertable && !column.nullable && !hasDefault,
      // A row among the parameters has no type by itself.
      filterable: readable && column.baseType.kind !== "composite" && !isWithoutEquality(column.baseType),
      sortable: readable && !isWithoutEquality(column.baseType) && !WITHOUT_ORDER.has(column.baseType.name),
    };
  }
}

/** `@since 2`: a field that clients of an earlier version do not know of. */
function isOfVersion({ comment }: Column, version: number): boolean {
  const [since] = commentTags(comment).get("since") ?? [];
  return since === undefined || Number(since) <= version;
}

/** Types that Postgres cannot compare. */
const WITHOUT_EQUALITY: ReadonlySet<string> = new Set([
  "json",
  "jsonpath",
  "xml",
  "point",
  "line",
  "lseg",
  "box",
  "path",
  "polygon",
  "circle",
  "refcursor",
  "pg_snapshot",
  "txid_snapshot",
]);

/** Those that it can compare, and not put into an order. */
const WITHOUT_ORDER: ReadonlySet<string> = new Set(["hstore", "xid", "cid", "aclitem"]);

function isWithoutEquality(given: DataType): boolean {
  const type = baseTypeOf(given);
  if (type.kind === "array") return isWithoutEquality(type.element);
  if (type.kind === "composite") return [...type.attributes.values()].some((part) => isWithoutEquality(part.type));
  return type.schema === "pg_catalog" && WITHOUT_EQUALITY.has(type.name);
}

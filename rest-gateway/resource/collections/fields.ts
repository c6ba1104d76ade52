import {
  type Catalog,
  type CatalogColumn,
  type CatalogTable,
  comparabilityOf,
  findRepresentation,
  ownValuesOf,
} from "#catalog";
import { memoize } from "#runtime";

/** A column as clients see it, with the role's permissions. */
export type CollectionField = {
  readonly name: string;
  readonly column: CatalogColumn;
  readonly readable: boolean;
  /** True if POST may insert it; PUT and PATCH may update it if it is `updatable`. */
  readonly insertable: boolean;
  readonly updatable: boolean;
  /** True if an insert must have a value. */
  readonly required: boolean;
  readonly filterable: boolean;
  readonly sortable: boolean;
  /** True if a cast function parses the values of the column's domain, so that only Postgres can check them. */
  readonly isReadByFunction: { readonly text: boolean; readonly json: boolean };
};

type FieldAudience = { readonly catalog: Catalog; readonly role: string; readonly version: number };

/** Returns all fields of a version in the order of the columns, including those without privileges. */
export function fieldsOf(table: CatalogTable, { catalog, role, version }: FieldAudience): readonly CollectionField[] {
  const spell = fieldNamingOf(version);
  const taken = new Set(table.columns.keys());
  const own = ownValuesOf(catalog, role, table);
  return [...table.columns.values()].filter((column) => isOfVersion(column, version)).map(toField);

  /** Returns the field's name. A column keeps its own name if another column has the converted one. */
  function nameOf({ name, comment }: CatalogColumn): string {
    const wanted = spell(formerNameOf(comment, version) ?? name);
    if (wanted === name || taken.has(wanted)) return name;
    taken.add(wanted);
    return wanted;
  }

  function toField(column: CatalogColumn): CollectionField {
    const mayUse = (verb: "select" | "insert" | "update") => catalog.hasPrivilege(role, verb, table, column.name);
    const isWritable = column.generated === null && column.identity !== "always";
    const readable = mayUse("select") || own.has(column.name);
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
      // A row value in a query has no type by itself.
      filterable: readable && column.baseType.kind !== "composite" && (comparison !== "none" || hasEqualsOnly(column)),
      sortable: readable && comparison === "order",
      isReadByFunction: {
        text: findRepresentation(catalog, "text", column.sqlType) !== null,
        json: findRepresentation(catalog, "json", column.sqlType) !== null,
      },
    };
  }
}

/** Geometric types whose `=` belongs to no operator class: it compares areas of boxes and circles, and the number of points of paths. */
const TYPES_WITH_EQUALS_ONLY: ReadonlySet<string> = new Set(["box", "circle", "line", "lseg", "path"]);

function hasEqualsOnly({ baseType: { schema, name } }: CatalogColumn): boolean {
  return schema === "pg_catalog" && TYPES_WITH_EQUALS_ONLY.has(name);
}

/** Returns true if the field is in the version: `@since 2` hides it in earlier versions, `@until 1` in later ones. */
function isOfVersion({ comment }: CatalogColumn, version: number): boolean {
  const tags = commentTags(comment);
  const [since] = tags.get("since") ?? [];
  const [until] = tags.get("until") ?? [];
  return (since === undefined || Number(since) <= version) && (until === undefined || version <= Number(until));
}

/** Returns the name of the column up to version 1, from `@formerName 1 title`. */
function formerNameOf(comment: string | null, version: number): string | null {
  for (const value of commentTags(comment).get("formerName") ?? []) {
    const { until, name } = FORMER_NAME.exec(value)?.groups ?? {};
    if (name !== undefined && version <= Number(until)) return name;
  }
  return null;
}

const FORMER_NAME = /^(?<until>\d+)\s+(?<name>\S.*)$/;
const TAG_LINE = /^@(?<name>[a-z]\w*)(?:[^\S\n]+(?<value>[^\n]*))?$/i;

const readTags = memoize((comment: string): CommentTags => {
  const tags = new Map<string, string[]>();
  for (const line of comment.split("\n")) {
    const { name, value = "" } = TAG_LINE.exec(line)?.groups ?? {};
    if (name === undefined) break;
    tags.set(name, [...(tags.get(name) ?? []), value.trim()]);
  }
  return tags;
});

/** Derives field names from column names, by version. */
export type FieldNaming = (sqlName: string) => string;

/** Returns the naming of a version: version 1 keeps column names, later versions use camelCase. */
export function fieldNamingOf(version: number): FieldNaming {
  return version === 1 ? keepSqlName : toCamelCase;
}

/** Converts `order_lines` and `"Order Lines"` to `order-lines`. A name in this form stays unchanged. */
export function toAddressName(sqlName: string): string {
  // The text is converted to lower case first, because some letters become two characters, one of which is not a letter.
  return sqlName.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-");
}

function keepSqlName(name: string): string {
  return name;
}

/** Converts `created_at` to `createdAt`; leading underscores stay. */
function toCamelCase(name: string): string {
  return name.replace(/(?<=[a-zA-Z0-9])_+([a-zA-Z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** Returns the first name that is not taken; if all are, the first one with a number. */
export function chooseFreeName(
  candidates: readonly [string, ...string[]],
  isTaken: (name: string) => boolean,
  numbered: (name: string, number: number) => string,
): string {
  const free = candidates.find((name) => !isTaken(name));
  if (free !== undefined) return free;
  let number = 2;
  while (isTaken(numbered(candidates[0], number))) number++;
  return numbered(candidates[0], number);
}

/** The leading lines of a comment that begin with `@`, by their first word. */
type CommentTags = ReadonlyMap<string, readonly string[]>;

/** Parses `@root user` in the first line to `root` -> `["user"]`. */
export function commentTags(comment: string | null): CommentTags {
  return readTags(comment?.startsWith("@") ? comment : "");
}

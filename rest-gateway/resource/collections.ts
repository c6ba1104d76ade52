import { memoize, memoizePerObject } from "../../engine/cache/memoize.ts";
import { applicablePolicies } from "../../engine/catalog/access.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import { publicComment } from "../../engine/catalog/comments.ts";
import type { Routine, RoutineArgument } from "../../engine/catalog/routines.ts";
import type { CatalogTable } from "../../engine/catalog/tables.ts";
import { baseTypeOf } from "../../engine/catalog/types.ts";
import { type CollectionField, fieldsOf } from "./fields.ts";
import { commentTags, type FieldNaming, fieldNamingOf, toAddressName } from "./naming.ts";
import { type CollectionReference, type NestedCollection, nestedOf, referencesOf } from "./relations.ts";
import { isAtRoot, tableAddresses } from "./table-addresses.ts";

/** The collections of one version, as one role sees them: what parsers refuse by, and documents are made from. */
export type Collections = {
  readonly version: number;
  readonly role: string;
  /** By the name in the address, whether or not the role may do anything with it. */
  find(name: string): Collection | undefined;
  /** The collection that is served at `/<name>` too. */
  findAtRoot(name: string): Collection | undefined;
  /** Of all, in the order in which their tables got them. */
  names(): Iterable<string>;
};

export type Collection = {
  /** In addresses: lower case, with hyphens. */
  readonly name: string;
  readonly table: CatalogTable;
  readonly description: string | null;
  /** Its rows follow the rules of the user resource; null for the general conventions. */
  readonly plain: UserResourceRules | null;
  /** Those that the role may read or write, in the order of the columns. */
  readonly fields: readonly CollectionField[];
  /** What addresses one row, in the order of the address, whether or not the role may read it; empty when rows have none. */
  readonly key: readonly CollectionField[];
  /** Rows of other collections that rows of this one refer to. */
  readonly references: readonly CollectionReference[];
  /** Collections whose rows refer to rows of this one. */
  readonly nested: readonly NestedCollection[];
  readonly actions: readonly RowAction[];
  /** Functions that find rows by a text, besides filters. */
  readonly searches: readonly SearchFunction[];
  /** What the table can do at all; what the role may do is asked by `may`. */
  readonly methods: { readonly collection: readonly string[]; readonly row: readonly string[] };
  readonly privileges: Readonly<Record<"read" | "create" | "update" | "delete", boolean>>;
  /** Whether the role is shown what it has made: Postgres refuses to, where no policy lets it read any row. */
  readonly returnsInserted: boolean;
};

/** Plain lists, 400 for every broken rule, and a code of its own for what is not there. */
export type UserResourceRules = { readonly notFound: string };

export type RowAction = {
  readonly name: string;
  readonly routine: Routine;
  readonly description: string | null;
  /** Those that follow the row. */
  readonly arguments: readonly { readonly name: string; readonly argument: RoutineArgument }[];
};

export type SearchFunction = { readonly parameter: string; readonly routine: Routine };

type CollectionsAudience = { readonly role: string; readonly version: number };

const cachedCollections = memoizePerObject((catalog: Catalog) =>
  memoize((version: number) => memoize((role: string) => makeCollections(catalog, { role, version }))),
);

/** Each is worked out when it is asked for, and once for as long as the catalogue lasts. */
export function collectionsOf(catalog: Catalog, { role, version }: CollectionsAudience): Collections {
  // Nothing is remembered of roles that somebody made up.
  return catalog.roles.has(role)
    ? cachedCollections(catalog)(version)(role)
    : makeCollections(catalog, { role, version });
}

/** Remembered by nobody: for who goes through all of them. */
export function makeCollections(catalog: Catalog, audience: CollectionsAudience): Collections {
  const { tables, addresses } = tableAddresses(catalog);
  const make = memoize((name: string) => toCollection(name, tables.get(name)!, { catalog, addresses, ...audience }));
  return {
    ...audience,
    find: (name) => (tables.has(name) ? make(name) : undefined),
    findAtRoot: (name) => (tables.has(name) && isAtRoot(tables.get(name)!) ? make(name) : undefined),
    names: () => tables.keys(),
  };
}

/** Whether the role may do something with it. */
export function isVisibleCollection({ privileges: may }: Collection): boolean {
  return Object.values(may).some(Boolean);
}

type CollectionContext = CollectionsAudience & {
  readonly catalog: Catalog;
  readonly addresses: ReadonlyMap<CatalogTable, string>;
};

function toCollection(name: string, table: CatalogTable, context: CollectionContext): Collection {
  const { catalog, role, version } = context;
  const all = fieldsOf(table, { catalog, role, version });
  const fields = all.filter(({ readable, insertable, updatable }) => readable || insertable || updatable);
  const nameOf = fieldNamingOf(version);
  const [row] = commentTags(table.comment).get("root") ?? [];
  const key = keyOf(table, all);
  // Of two things at one address the rows count.
  const isNested = (name: string) => nested.some((each) => each.name === name);
  const schema = catalog.schemas.get(table.schema);
  const nested = nestedOf(table, context);
  const hasUsage = schema !== undefined && catalog.hasPrivilege(role, "usage", schema);
  const mayRead = hasUsage && fields.some(({ readable }) => readable);
  return {
    name,
    table,
    description: publicComment(table.comment),
    plain: row !== undefined && version === 1 ? { notFound: `${(row || "resource").toUpperCase()}_NOT_FOUND` } : null,
    fields,
    key,
    references: referencesOf(table, fields, context, nameOf),
    nested,
    actions: key.length > 0 ? actionsOf(table, context, nameOf).filter(({ name }) => !isNested(name)) : [],
    searches: searchesOf(table, context, nameOf),
    methods: methodsOf(table),
    privileges: {
      read: mayRead,
      create: hasUsage && (fields.some(({ insertable }) => insertable) || catalog.hasPrivilege(role, "insert", table)),
      update: hasUsage && fields.some(({ updatable }) => updatable),
      delete: hasUsage && table.deletable && catalog.hasPrivilege(role, "delete", table),
    },
    returnsInserted:
      mayRead && applicablePolicies(catalog, table, role, "select")?.some(({ permissive }) => permissive) !== false,
  };
}

/** The primary key, or else the first other one that no row is without. */
function keyOf(
  { primaryKey, uniqueKeys, columns }: CatalogTable,
  all: readonly CollectionField[],
): readonly CollectionField[] {
  const isNeverNull = (name: string) => columns.get(name)?.nullable === false;
  const others = uniqueKeys.filter(({ predicate, columns: key }) => predicate === null && key.every(isNeverNull));
  const names = primaryKey.length > 0 ? primaryKey : (others[0]?.columns ?? []);
  const key = names.flatMap((name) => all.find(({ column }) => column.name === name) ?? []);
  return key.length === names.length ? key : [];
}

/** A function that changes something and takes the row first; of several by one name the one that was created first. */
function actionsOf(table: CatalogTable, { catalog, role }: CollectionContext, nameOf: FieldNaming): RowAction[] {
  const found = new Map<string, RowAction>();
  for (const routine of table.rowRoutines.toSorted((one, other) => one.oid - other.oid)) {
    const [, ...others] = routine.arguments;
    const name = toAddressName(routine.name);
    const isAction = routine.kind === "function" && routine.volatility === "volatile" && isExposed(routine, catalog);
    const isNamed = others.every((argument) => argument.name !== null);
    if (!isAction || !isNamed || found.has(name) || !catalog.hasPrivilege(role, "execute", routine)) continue;
    found.set(name, {
      name,
      routine,
      description: publicComment(routine.comment),
      arguments: others.map((argument) => ({ name: nameOf(argument.name!), argument })),
    });
  }
  return [...found.values()];
}

/** `@filter` on a function of one argument that gives rows of the table. */
function searchesOf(table: CatalogTable, { catalog, role }: CollectionContext, nameOf: FieldNaming): SearchFunction[] {
  if (table.primaryKey.length === 0) return [];
  const routines = [...(catalog.schemas.get(table.schema)?.routines.values() ?? [])].flat();
  return routines.flatMap((routine) => {
    const [argument, ...others] = routine.arguments;
    if (
      !returnsRowOf({ table }, routine) ||
      !argument?.name ||
      others.length > 0 ||
      !commentTags(routine.comment).has("filter")
    )
      return [];
    return catalog.hasPrivilege(role, "execute", routine) ? { parameter: nameOf(argument.name), routine } : [];
  });
}

/** Whether what the function gives are rows of the collection. */
export function returnsRowOf({ table }: Pick<Collection, "table">, { returns }: Routine): boolean {
  const type = baseTypeOf(returns.type);
  return type.kind === "composite" && type.table?.name === table.name && type.table.schema === table.schema;
}

function isExposed({ schema }: Routine, catalog: Catalog): boolean {
  return catalog.schemas.get(schema)?.exposed === true;
}

function methodsOf({ insertable, updatable, deletable }: CatalogTable): Collection["methods"] {
  const read = ["GET", "HEAD", "OPTIONS"];
  return {
    collection: [...read, ...(insertable ? ["POST"] : [])],
    row: [...read, ...(updatable ? ["PATCH", "PUT"] : []), ...(deletable ? ["DELETE"] : [])].sort(),
  };
}

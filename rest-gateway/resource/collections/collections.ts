import {
  applicablePolicies,
  baseTypeOf,
  type Catalog,
  type CatalogTable,
  exposedSchemas,
  publicComment,
  type Routine,
  type RoutineArgument,
} from "#catalog";
import type { CatalogKeeper } from "#catalog/loading";
import { memoize, memoizePerObject } from "#runtime";
import type { Logger } from "#runtime/log";
import {
  type CollectionField,
  chooseFreeName,
  commentTags,
  type FieldNaming,
  fieldNamingOf,
  fieldsOf,
  toAddressName,
} from "./fields.ts";
import { type CollectionReference, type NestedCollection, nestedOf, referencesOf } from "./relations.ts";

/** The collections of one version, as one role sees them. */
export type Collections = {
  readonly version: number;
  readonly role: string;
  /** Finds a collection by the name in the path, even if the role has no privilege on it. */
  find(name: string): Collection | undefined;
  /** Finds a collection that is also served at `/<name>`. */
  findAtRoot(name: string): Collection | undefined;
  /** Returns all names, in the order in which tables get their addresses. */
  names(): Iterable<string>;
};

export type Collection = {
  /** The name in paths: lower case, with hyphens. */
  readonly name: string;
  readonly table: CatalogTable;
  readonly description: string | null;
  /** The rules of the user resource for a collection that has them; null for general collections. */
  readonly plain: UserResourceRules | null;
  /** The fields that the role may read or write, in the order of the columns. */
  readonly fields: readonly CollectionField[];
  /** The fields that identify a row in a path, in their order, even if the role may not read them; empty without a key. */
  readonly key: readonly CollectionField[];
  /** Foreign keys to rows of other collections. */
  readonly references: readonly CollectionReference[];
  /** Collections with a foreign key to this one. */
  readonly nested: readonly NestedCollection[];
  readonly actions: readonly RowAction[];
  /** Functions that filter rows by a text. */
  readonly searches: readonly SearchFunction[];
  /** The methods that the table supports; the role's permissions are in `privileges`. */
  readonly methods: { readonly collection: readonly string[]; readonly row: readonly string[] };
  readonly privileges: Readonly<Record<"read" | "create" | "update" | "delete", boolean>>;
  /** True if its rows are users, whose creation counts against SIGN_UP_LIMIT. */
  readonly countsSignUps: boolean;
  /** True if inserts can return the row: Postgres refuses RETURNING if no policy lets the role read any row. */
  readonly returnsInserted: boolean;
};

/** The rules of the user resource: plain lists, status 400 for every invalid value, and a code of its own for unknown rows. */
type UserResourceRules = { readonly notFound: string };

export type RowAction = {
  readonly name: string;
  readonly routine: Routine;
  readonly description: string | null;
  /** The arguments after the row. */
  readonly arguments: readonly { readonly name: string; readonly argument: RoutineArgument }[];
};

type SearchFunction = { readonly parameter: string; readonly routine: Routine };

type CollectionsAudience = { readonly role: string; readonly version: number };

const cachedCollections = memoizePerObject((catalog: Catalog) =>
  memoize((version: number) => memoize((role: string) => makeCollections(catalog, { role, version }))),
);

/** Returns the collections. Each is computed on demand and cached with the catalog. */
export function collectionsOf(catalog: Catalog, { role, version }: CollectionsAudience): Collections {
  // Unknown role names come from callers and are not cached.
  return catalog.roles.has(role)
    ? cachedCollections(catalog)(version)(role)
    : makeCollections(catalog, { role, version });
}

/** Makes collections without a cache, for callers that iterate over all of them. */
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

/** Returns true if the role has any privilege on it. */
export function isVisibleCollection({ privileges }: Collection): boolean {
  return Object.values(privileges).some(Boolean);
}

/**
 * The names of fields, references and nested collections that an error may disclose: the role may read the field, or use the related
 * collection and the columns that refer.
 */
export function visibleNames({ fields, references, nested }: Collection, collections: Collections): string[] {
  const isVisible = ({ target, relationship }: CollectionReference | NestedCollection) => {
    const related = collections.find(target);
    const mayName = (column: string) => related!.fields.some((field) => field.column.name === column);
    return related && isVisibleCollection(related) && relationship.columns.every((pair) => mayName(pair.target));
  };
  const readable = fields.filter((field) => field.readable);
  return [...readable, ...[...references, ...nested].filter(isVisible)].map(({ name }) => name);
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
  const tags = commentTags(table.comment);
  const [row] = tags.get("root") ?? [];
  const key = keyOf(table, all);
  // A nested collection takes precedence over an action of the same name.
  const isNested = (name: string) => nested.some((each) => each.name === name);
  const schema = catalog.schemas.get(table.schema);
  const nested = nestedOf(table, context);
  const hasUsage = schema !== undefined && catalog.hasPrivilege(role, "usage", schema);
  const mayReadSome = hasUsage && fields.some(({ readable }) => readable);
  const isServed = all.every(({ readable, column }) => readable || !commentTags(column.comment).has("personal"));
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
      read: isServed && mayReadSome,
      create: hasUsage && (fields.some(({ insertable }) => insertable) || catalog.hasPrivilege(role, "insert", table)),
      update: isServed && hasUsage && fields.some(({ updatable }) => updatable),
      delete: isServed && hasUsage && table.deletable && catalog.hasPrivilege(role, "delete", table),
    },
    countsSignUps: tags.has("signUp"),
    returnsInserted:
      mayReadSome && applicablePolicies(catalog, table, role, "select")?.some(({ permissive }) => permissive) !== false,
  };
}

/** Returns the primary key, or else the first unique key without nullable columns. */
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

/** Returns volatile functions whose first argument is the row; of overloads the oldest. */
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

/** Returns functions with the comment tag `@filter` that take one argument and return rows of the table. */
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

/** Returns true if the function returns rows of the collection. */
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

type TableAddresses = {
  /** All exposed tables by address, in the order in which they got their addresses. */
  readonly tables: ReadonlyMap<string, CatalogTable>;
  readonly addresses: ReadonlyMap<CatalogTable, string>;
  /** Finds the table of an address within one schema. */
  findIn(schema: string, name: string): CatalogTable | undefined;
};

/** A table whose own address is held by an older table. */
type DisplacedTable = { readonly table: CatalogTable; readonly address: string; readonly holder: CatalogTable };

/**
 * Assigns one address to each table: its name, unless an older table has that. So adding a table changes no address. Tables at
 * the root come first.
 */
export const tableAddresses = memoizePerObject((catalog: Catalog): TableAddresses => {
  const tables = new Map<string, CatalogTable>();
  for (const table of tablesInOrder(catalog)) {
    tables.set(freeAddress(candidatesFor(table, tables), tables), table);
  }
  const tablesOf = memoizePerObject((schema: { readonly name: string }) => addressesWithin(schema.name, tables));
  return {
    tables,
    addresses: new Map([...tables].map(([address, table]) => [table, address])),
    findIn(name, address) {
      const schema = catalog.schemas.get(name);
      const table = tables.get(address);
      // Paths from links mean the same with and without a schema header.
      return table?.schema === name ? table : schema && tablesOf(schema).get(address);
    },
  };
});

export function displacedTables(catalog: Catalog): readonly DisplacedTable[] {
  const { tables } = tableAddresses(catalog);
  return [...tables].flatMap(([address, table]) => {
    const holder = tables.get(wantedAddress(table))!;
    return holder === table ? [] : [{ table, address, holder }];
  });
}

function tablesInOrder(catalog: Catalog): CatalogTable[] {
  const tables = exposedSchemas(catalog).flatMap((schema) => [...schema.tables.values()]);
  const rankOf = (table: CatalogTable) => (isAtRoot(table) ? 0 : 1);
  return tables
    .filter(({ isPartition }) => !isPartition)
    .sort((one, other) => rankOf(one) - rankOf(other) || one.oid - other.oid);
}

/** Returns `parts`, or `shop-parts` if a table of another schema has that address. */
function candidatesFor(table: CatalogTable, taken: ReadonlyMap<string, CatalogTable>): [string, ...string[]] {
  const wanted = wantedAddress(table);
  const holder = taken.get(wanted);
  const isOfOtherSchema = holder !== undefined && holder.schema !== table.schema;
  return isOfOtherSchema ? [wanted, toAddressName(`${table.schema}-${table.name}`)] : [wanted];
}

/** Returns the preferred address. The comment tag `@address human-beings` replaces the table's name. */
function wantedAddress({ name, comment }: CatalogTable): string {
  const [named] = commentTags(comment).get("address") ?? [];
  return toAddressName(named || name);
}

/** Returns the addresses that the tables would have without other schemas. */
function addressesWithin(schema: string, tables: ReadonlyMap<string, CatalogTable>): ReadonlyMap<string, CatalogTable> {
  const found = new Map<string, CatalogTable>();
  for (const table of tables.values()) {
    if (table.schema === schema) found.set(freeAddress([wantedAddress(table)], found), table);
  }
  return found;
}

function freeAddress(candidates: readonly [string, ...string[]], taken: ReadonlyMap<string, CatalogTable>): string {
  const numbered = (name: string, number: number) => toAddressName(`${name}-${number}`);
  return chooseFreeName(candidates, (address) => taken.has(address), numbered);
}

/**
 * Returns true for the comment tag `@root user`: the table is served at `/<name>` too, by the rules of the user resource;
 * the word is part of USER_NOT_FOUND.
 */
function isAtRoot({ comment }: Pick<CatalogTable, "comment">): boolean {
  return commentTags(comment).has("root");
}

/** Logs the tables whose address is not their name, and again on changes. Returns a function that stops the logging. */
export function warnOfDisplacedTables(
  catalog: Pick<CatalogKeeper, "current" | "onChange">,
  log: Pick<Logger, "warn">,
): () => void {
  let logged = "{}";
  const warn = () => {
    const displaced = displacedTables(catalog.current());
    const tables = Object.fromEntries(
      displaced.map(({ table, address }) => [`${table.schema}.${table.name}`, `/api/v1/${address}`]),
    );
    const text = JSON.stringify(tables);
    if (text !== logged && displaced.length > 0) {
      log.warn({ tables }, "tables are at other addresses than those of their names, which older tables have");
    }
    logged = text;
  };
  warn();
  return catalog.onChange(warn);
}

import { applicablePolicies } from "../../engine/catalog/applicable-policies.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Argument, Routine } from "../../engine/catalog/routines.ts";
import { spokenComment } from "../../engine/catalog/spoken-comment.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import { baseTypeOf } from "../../engine/catalog/types.ts";
import { memoized } from "../../engine/memoized.ts";
import { oncePer } from "../../engine/once-per.ts";
import { commentTags } from "./comment-tags.ts";
import { type Field, fieldsOf } from "./fields.ts";
import { isAtRoot } from "./is-at-root.ts";
import { type Naming, namingOf, toAddressName } from "./naming.ts";
import { type Nested, nestedOf, type Reference, referencesOf } from "./relations.ts";
import { tableAddresses } from "./table-addresses.ts";

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
  readonly table: Table;
  readonly description: string | null;
  /** Its rows follow the rules of the user resource; null for the general conventions. */
  readonly plain: Plain | null;
  /** Those that the role may read or write, in the order of the columns. */
  readonly fields: readonly Field[];
  /** What addresses one row, in the order of the address, whether or not the role may read it; empty when rows have none. */
  readonly key: readonly Field[];
  /** Rows of other collections that rows of this one refer to. */
  readonly references: readonly Reference[];
  /** Collections whose rows refer to rows of this one. */
  readonly nested: readonly Nested[];
  readonly actions: readonly Action[];
  /** Functions that find rows by a text, besides filters. */
  readonly searches: readonly Search[];
  /** What the table can do at all; what the role may do is asked by `may`. */
  readonly methods: { readonly collection: readonly string[]; readonly row: readonly string[] };
  readonly may: Readonly<Record<"read" | "create" | "update" | "delete", boolean>>;
  /** Whether the role is shown what it has made: Postgres refuses to, where no policy lets it read any row. */
  readonly showsNew: boolean;
};

/** Plain lists, 400 for every broken rule, and a code of its own for what is not there. */
export type Plain = { readonly notFound: string };

export type Action = {
  readonly name: string;
  readonly routine: Routine;
  readonly description: string | null;
  /** Those that follow the row. */
  readonly arguments: readonly { readonly name: string; readonly argument: Argument }[];
};

export type Search = { readonly parameter: string; readonly routine: Routine };

type Audience = { readonly role: string; readonly version: number };

const collectionsBy = oncePer((catalog: Catalog) =>
  memoized((version: number) => memoized((role: string) => makeCollections(catalog, { role, version }))),
);

/** Each is worked out when it is asked for, and once for as long as the catalogue lasts. */
export function collectionsOf(catalog: Catalog, { role, version }: Audience): Collections {
  // Nothing is remembered of roles that somebody made up.
  return catalog.roles.has(role) ? collectionsBy(catalog)(version)(role) : makeCollections(catalog, { role, version });
}

/** Remembered by nobody: for who goes through all of them. */
export function makeCollections(catalog: Catalog, audience: Audience): Collections {
  const { tables, addresses } = tableAddresses(catalog);
  const make = memoized((name: string) => toCollection(name, tables.get(name)!, { catalog, addresses, ...audience }));
  return {
    ...audience,
    find: (name) => (tables.has(name) ? make(name) : undefined),
    findAtRoot: (name) => (tables.has(name) && isAtRoot(tables.get(name)!) ? make(name) : undefined),
    names: () => tables.keys(),
  };
}

/** Whether the role may do something with it. */
export function isVisible({ may }: Collection): boolean {
  return Object.values(may).some(Boolean);
}

type Surroundings = Audience & { readonly catalog: Catalog; readonly addresses: ReadonlyMap<Table, string> };

function toCollection(name: string, table: Table, around: Surroundings): Collection {
  const { catalog, role, version } = around;
  const all = fieldsOf(table, { catalog, role, version });
  const fields = all.filter(({ readable, insertable, updatable }) => readable || insertable || updatable);
  const nameOf = namingOf(version);
  const [row] = commentTags(table.comment).get("root") ?? [];
  const key = keyOf(table, all);
  // Of two things at one address the rows count.
  const isNested = (name: string) => nested.some((each) => each.name === name);
  const schema = catalog.schemas.get(table.schema);
  const nested = nestedOf(table, around);
  const isInSight = schema !== undefined && catalog.mayRole(role, "usage", schema);
  const mayRead = isInSight && fields.some(({ readable }) => readable);
  return {
    name,
    table,
    description: spokenComment(table.comment),
    plain: row !== undefined && version === 1 ? { notFound: `${(row || "resource").toUpperCase()}_NOT_FOUND` } : null,
    fields,
    key,
    references: referencesOf(table, fields, around, nameOf),
    nested,
    actions: key.length > 0 ? actionsOf(table, around, nameOf).filter(({ name }) => !isNested(name)) : [],
    searches: searchesOf(table, around, nameOf),
    methods: methodsOf(table),
    may: {
      read: mayRead,
      create: isInSight && (fields.some(({ insertable }) => insertable) || catalog.mayRole(role, "insert", table)),
      update: isInSight && fields.some(({ updatable }) => updatable),
      delete: isInSight && table.deletable && catalog.mayRole(role, "delete", table),
    },
    showsNew:
      mayRead && applicablePolicies(catalog, table, role, "select")?.some(({ permissive }) => permissive) !== false,
  };
}

/** The primary key, or else the first other one that no row is without. */
function keyOf({ primaryKey, uniqueKeys, columns }: Table, all: readonly Field[]): readonly Field[] {
  const isNeverNull = (name: string) => columns.get(name)?.nullable === false;
  const others = uniqueKeys.filter(({ predicate, columns: key }) => predicate === null && key.every(isNeverNull));
  const names = primaryKey.length > 0 ? primaryKey : (others[0]?.columns ?? []);
  const key = names.flatMap((name) => all.find(({ column }) => column.name === name) ?? []);
  return key.length === names.length ? key : [];
}

/** A function that changes something and takes the row first; of several by one name the one that was created first. */
function actionsOf(table: Table, { catalog, role }: Surroundings, nameOf: Naming): Action[] {
  const found = new Map<string, Action>();
  for (const routine of table.rowRoutines.toSorted((one, other) => one.oid - other.oid)) {
    const [, ...others] = routine.arguments;
    const name = toAddressName(routine.name);
    const isAction = routine.kind === "function" && routine.volatility === "volatile" && isExposed(routine, catalog);
    const isNamed = others.every((argument) => argument.name !== null);
    if (!isAction || !isNamed || found.has(name) || !catalog.mayRole(role, "execute", routine)) continue;
    found.set(name, {
      name,
      routine,
      description: spokenComment(routine.comment),
      arguments: others.map((argument) => ({ name: nameOf(argument.name!), argument })),
    });
  }
  return [...found.values()];
}

/** `@filter` on a function of one argument that gives rows of the table. */
function searchesOf(table: Table, { catalog, role }: Surroundings, nameOf: Naming): Search[] {
  if (table.primaryKey.length === 0) return [];
  const routines = [...(catalog.schemas.get(table.schema)?.routines.values() ?? [])].flat();
  return routines.flatMap((routine) => {
    const [argument, ...others] = routine.arguments;
    if (
      !givesRowOf({ table }, routine) ||
      !argument?.name ||
      others.length > 0 ||
      !commentTags(routine.comment).has("filter")
    )
      return [];
    return catalog.mayRole(role, "execute", routine) ? { parameter: nameOf(argument.name), routine } : [];
  });
}

/** Whether what the function gives are rows of the collection. */
export function givesRowOf({ table }: Pick<Collection, "table">, { returns }: Routine): boolean {
  const type = baseTypeOf(returns.type);
  return type.kind === "composite" && type.table?.name === table.name && type.table.schema === table.schema;
}

function isExposed({ schema }: Routine, catalog: Catalog): boolean {
  return catalog.schemas.get(schema)?.exposed === true;
}

function methodsOf({ insertable, updatable, deletable }: Table): Collection["methods"] {
  const read = ["GET", "HEAD", "OPTIONS"];
  return {
    collection: [...read, ...(insertable ? ["POST"] : [])],
    row: [...read, ...(updatable ? ["PATCH", "PUT"] : []), ...(deletable ? ["DELETE"] : [])].sort(),
  };
}

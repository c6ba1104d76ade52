import type { GraphQLOutputType } from "postgraphile/graphql";
import { oncePer } from "../engine/once-per.ts";
import { type Codec, keyOf, type Relation, type Resource, type Table } from "./table.ts";

declare global {
  namespace DataplanPg {
    interface PgResourceExtensions {
      /** Of a function: its oid, and whether it runs with the privileges of its owner. */
      routine?: { readonly oid: string; readonly isSecurityDefiner: boolean };
    }
  }
}

export type TableName = { readonly schemaName: string; readonly name: string };
export type TablePrivilege = "select" | "insert" | "update" | "delete";

/** The privileges of one role, or of several together. */
export type RolePrivileges = {
  /** On the column, or without one on the table or any of its columns. */
  may(privilege: TablePrivilege, table: TableName, column?: string): boolean;
  mayExecute(oid: string): boolean;
};

export type VisibleTo = (role: RolePrivileges) => boolean;

type WithExtensions = { readonly extensions?: object | null | undefined };
type Visibility = { readonly visibleTo?: VisibleTo; readonly typeWithoutRow?: GraphQLOutputType };

/** A field, argument or input field that only those roles see for which the rule holds. */
export function visibleTo<Part extends object>(part: Part & WithExtensions, rule: VisibleTo): Part {
  const own: Visibility = { visibleTo: rule };
  return { ...part, extensions: { ...part.extensions, ...own } };
}

/** Null for what everybody may see. */
export function visibilityOf({ extensions }: WithExtensions): VisibleTo | null {
  return (extensions as Visibility | undefined)?.visibleTo ?? null;
}

/** Extensions of a field that has another type where its own is not visible. */
export function typeWithoutRow(type: GraphQLOutputType): Visibility {
  return { typeWithoutRow: type };
}

export function typeWithoutRowOf({ extensions }: WithExtensions): GraphQLOutputType | null {
  return (extensions as Visibility | undefined)?.typeWithoutRow ?? null;
}

const toEverybody: VisibleTo = () => true;

export function mayExecute({ extensions }: Resource): VisibleTo {
  const oid = extensions?.routine?.oid;
  return oid === undefined ? toEverybody : (role) => role.mayExecute(oid);
}

/** Without columns: any of them. */
export function mayUse(privilege: TablePrivilege, resource: Resource, columns?: readonly string[]): VisibleTo {
  const table = tableOf(resource.codec);
  if (!table) return toEverybody;
  if (!columns) return (role) => role.may(privilege, table);
  return (role) => columns.every((column) => role.may(privilege, table, column));
}

/** Whoever names a row by its key has to be able to read that. */
export function mayNameRows(table: Table): VisibleTo {
  return mayUse("select", table, keyOf(table) ?? undefined);
}

/** A row that is a value, as the result of a function is, can be read without privileges on its table. */
export function maySeeColumn(build: GraphileBuild.Build, codec: Codec, column: string): VisibleTo {
  const table = tableOf(codec);
  if (!table) return toEverybody;
  const attribute = codec.attributes?.[column];
  // What is computed, or of another table, has no privileges under this name.
  const own = attribute?.via || attribute?.expression ? undefined : column;
  const sources = sourcesOf(build).get(codec) ?? [];
  return (role) => role.may("select", table, own) || sources.some((source) => source(role));
}

export function mayFollow(build: GraphileBuild.Build, relation: Relation): VisibleTo {
  const { localCodec, localAttributes, remoteResource, remoteAttributes } = relation;
  const local = localAttributes.map((column) => maySeeColumn(build, localCodec, column));
  return every([...local, mayUse("select", remoteResource, remoteAttributes)]);
}

export function every(rules: readonly VisibleTo[]): VisibleTo {
  return (role) => rules.every((rule) => rule(role));
}

/** For row types of tables, who gets such rows as values: from functions, and from columns of that type. */
const sourcesOf = oncePer(({ pgResources, allPgCodecs }: GraphileBuild.Build): ReadonlyMap<Codec, VisibleTo[]> => {
  const sources = new Map<Codec, VisibleTo[]>();
  const add = (codec: Codec, ruleFor: (table: TableName) => VisibleTo) => {
    for (const row of rowsWithin(codec)) {
      const rules = sources.get(row) ?? [];
      sources.set(row, rules);
      rules.push(ruleFor(tableOf(row)!));
    }
  };
  for (const resource of Object.values(pgResources) as Resource[]) {
    if (resource.parameters) add(resource.codec, (table) => mayReadResult(resource, table));
  }
  for (const codec of allPgCodecs as ReadonlySet<Codec>) {
    const table = tableOf(codec);
    if (!table) continue;
    for (const [column, attribute] of Object.entries(codec.attributes!)) {
      add(attribute.codec, () => (role) => role.may("select", table, column));
    }
  }
  return sources;
});

/**
 * A definer function shows whole rows to those who may execute it. Another one selects as its caller does; to a role that may
 * select no column of the table it can still give rows that it has from elsewhere.
 */
function mayReadResult(resource: Resource, table: TableName): VisibleTo {
  const mayCall = mayExecute(resource);
  if (resource.extensions?.routine?.isSecurityDefiner) return mayCall;
  return (role) => mayCall(role) && !role.may("select", table);
}

/** The row types of tables among a type and the types that it is made of. */
function rowsWithin(codec: Codec): ReadonlySet<Codec> {
  const rows = new Set<Codec>();
  const seen = new Set<Codec>();
  const visit = (inner: Codec | undefined) => {
    if (!inner || seen.has(inner)) return;
    seen.add(inner);
    if (tableOf(inner)) rows.add(inner);
    visit(inner.arrayOfCodec);
    visit(inner.domainOfCodec);
    for (const attribute of Object.values(inner.attributes ?? {})) visit(attribute.codec);
  };
  visit(codec);
  return rows;
}

/** Null for a composite type, which is nobody's to grant. */
export function tableOf({ attributes, extensions }: Codec): TableName | null {
  return attributes && extensions?.isTableLike ? (extensions.pg ?? null) : null;
}

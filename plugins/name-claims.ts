import { isEnumCodec, type PgCodecAnyScalar, type PgCodecWithAttributes, TYPES } from "@dataplan/pg";
import type { GraphQLEnumValueConfigMap, GraphQLInputType } from "grafast/graphql";
import { memoizePerObject } from "#runtime";
import { TIME_CODECS } from "./codecs.ts";
import { type Codec, functionResourcesOf, type PgTable, type SchemaResource, sqlNameOf, tablesOf } from "./table.ts";

type AssignedNames<Key extends object> = WeakMap<Key, string>;

/** Types that core shows as objects, which need an input type too. */
const OBJECT_CODECS: ReadonlySet<unknown> = new Set([
  TIME_CODECS.interval,
  ...(["point", "line", "lseg", "box", "path", "polygon", "circle"] as const).map((name) => TYPES[name]),
]);

/** Core's names for the element types of Postgres's ranges. */
const RANGE_ELEMENT_NAMES: Readonly<Record<string, string>> = {
  int4: "Int",
  int8: "BigInt",
  numeric: "BigFloat",
  date: "Date",
  timestamptz: "Datetime",
  timestamp: "LocalDateTime",
};

const UNQUOTED_PATH = /^[a-z0-9_.]+$/;

/** The name of a single row of each table, used in fields and inputs. */
export function rowNameClaims(build: GraphileBuild.Build, assigned: AssignedNames<SchemaResource>): NameClaim[] {
  const { inflection } = build;
  return tablesInOrder(build).map((table) => ({
    preferred: inflection._singularizedResourceName(table),
    suffix: "_record",
    derivedNames: (name) => [
      `Query.${inflection.camelCase(name)}`,
      `Query.${inflection.allRowsOf(name)}`,
      `Mutation.${inflection.camelCase(`create-${name}`)}`,
    ],
    rename: (name) => assigned.set(table, name),
  }));
}

/** The fields of functions, grouped by the type that they are on: Query, Mutation or a row type. */
export function functionFieldClaims(
  build: GraphileBuild.Build,
  assigned: AssignedNames<SchemaResource>,
): NameClaim[][] {
  const { inflection } = build;
  const rowOf = ({ parameters }: SchemaResource) => {
    const codec: Codec | undefined = parameters[0]?.codec;
    return codec?.attributes && codec.extensions?.isTableLike !== false ? codec : null;
  };
  const groups = Map.groupBy(functionsOf(build), (resource) => (resource.isMutation ? "mutation" : rowOf(resource)));
  return [...groups].map(([group, functions]) =>
    functions.map((resource) => ({
      preferred:
        group === null || group === "mutation"
          ? inflection.customQueryField({ resource })
          : inflection.computedAttributeField({ resource }),
      suffix: "_",
      derivedNames: (name) => [name],
      rename: (name) => assigned.set(resource, name),
    })),
  );
}

type TypeClaim = NameClaim & { readonly codec: Codec };

/**
 * Tables come first, then other row types (composite types and results of functions), then enums and domains. But a type that
 * is older than every table of its name precedes them, so that adding a table renames nothing.
 */
export function typeClaims(build: GraphileBuild.Build, assigned: AssignedNames<Codec>): NameClaim[] {
  const tables = tablesInOrder(build).map(({ codec }) => codec);
  const tableCodecs: ReadonlySet<Codec> = new Set(tables);
  const others = [...build.allPgCodecs].filter(
    (codec: Codec): codec is PgCodecWithAttributes => Boolean(codec.attributes) && !tableCodecs.has(codec),
  );
  const tableClaims = tables.map((codec) => rowTypeClaim(build, assigned, codec, true));
  const otherClaims = [
    ...others.map((codec) => rowTypeClaim(build, assigned, codec, false)),
    ...valueTypeClaims(build, assigned),
  ];
  const tablesByName = Map.groupBy(tableClaims, ({ preferred }) => preferred);
  const { elder: olderThanTables = [], younger: newerThanTables = [] } = Object.groupBy(
    otherClaims,
    ({ preferred, codec }) => {
      const rivals = tablesByName.get(preferred) ?? [];
      return rivals.length > 0 && rivals.every((rival) => oidOf(codec) < oidOf(rival.codec)) ? "elder" : "younger";
    },
  );
  return [...olderThanTables, ...tableClaims, ...newerThanTables];
}

/** Postgres numbers objects of all kinds in the order of their creation. */
function oidOf({ extensions }: Codec): number {
  return Number(extensions?.oid ?? Number.POSITIVE_INFINITY);
}

function rowTypeClaim(
  { inflection }: GraphileBuild.Build,
  assigned: AssignedNames<Codec>,
  codec: PgCodecWithAttributes,
  isOfTable: boolean,
): TypeClaim {
  return {
    codec,
    preferred: inflection.tableType(codec),
    suffix: "Record",
    derivedNames: (name) => [
      name,
      inflection.connectionType(name),
      inflection.edgeType(name),
      inflection.inputType(name),
      inflection.patchType(name),
      inflection.baseInputType(name),
      ...(isOfTable ? [inflection.inputType(`${name}Filter`)] : []),
    ],
    rename: (name) => assigned.set(codec, name),
  };
}

/** Types of enums and domains. */
function valueTypeClaims(build: GraphileBuild.Build, assigned: AssignedNames<Codec>): TypeClaim[] {
  const { inflection } = build;
  const codecs = [...build.allPgCodecs] as Codec[];
  const inRanges = new Set(codecs.map(({ rangeOfCodec }) => rangeOfCodec));
  const values = codecs.filter(
    (codec): codec is PgCodecAnyScalar => !codec.attributes && Boolean(isEnumCodec(codec) || codec.domainOfCodec),
  );
  return values.map((codec) => ({
    codec,
    preferred: inflection.scalarCodecTypeName(codec),
    suffix: "Type",
    derivedNames: (name) => [
      name,
      ...(isObjectDomain(codec)
        ? [inflection.connectionType(name), inflection.edgeType(name), inflection.inputType(name)]
        : []),
      ...(inRanges.has(codec) ? rangeTypeNames(build, name) : []),
    ],
    rename: (name) => assigned.set(codec, name),
  }));
}

/** Inputs and connections of functions; `inPlace` are the functions that replace a generated mutation of a table. */
export function functionTypeClaims(
  build: GraphileBuild.Build,
  assigned: AssignedNames<SchemaResource>,
): { inPlace: NameClaim[]; others: NameClaim[] } {
  const { inflection } = build;
  const ofTables = new Set(tableMutations(build).map((mutation) => inflection.tableMutation(mutation)));
  const { inPlace = [], others = [] } = Object.groupBy(functionsOf(build), (resource) =>
    resource.isMutation && ofTables.has(inflection.customMutationField({ resource })) ? "inPlace" : "others",
  );
  const claim = (resource: SchemaResource): NameClaim => ({
    preferred: inflection.functionType(resource),
    suffix: "Function",
    derivedNames: (name) =>
      resource.isMutation
        ? [inflection.inputType(name)]
        : hasOwnConnection(resource)
          ? [inflection.connectionType(name), inflection.edgeType(name)]
          : [],
    rename: (name) => assigned.set(resource, name),
  });
  return { inPlace: inPlace.map(claim), others: others.map(claim) };
}

/** Type names that follow from names assigned before: inputs of table mutations, and ranges. */
export function derivedTypeNames(build: GraphileBuild.Build): ReadonlySet<string> {
  const { inflection } = build;
  const functions = new Set(
    functionsOf(build)
      .filter(({ isMutation }) => isMutation)
      .map((resource) => inflection.customMutationField({ resource })),
  );
  const inputs = tableMutations(build)
    .filter((mutation) => !functions.has(inflection.tableMutation(mutation)))
    .map((mutation) => inflection.tableMutationInput(mutation));
  const ranges = [...build.allPgCodecs].flatMap(({ rangeOfCodec }: Codec) => {
    const name = RANGE_ELEMENT_NAMES[rangeOfCodec?.name ?? ""];
    return name ? rangeTypeNames(build, inflection.builtin(name)) : [];
  });
  return new Set([...inputs, ...ranges]);
}

function tableMutations(build: GraphileBuild.Build): { verb: "create" | "update"; table: PgTable }[] {
  return tablesInOrder(build).flatMap((table) => (["create", "update"] as const).map((verb) => ({ verb, table })));
}

const functionsOf = memoizePerObject((build: GraphileBuild.Build): SchemaResource[] => {
  return sortByPrecedence(functionResourcesOf(build), (resource) => build.inflection.functionType(resource), build);
});

/** Tables named by a comment first, then by age, so that adding a table renames no other. */
const tablesInOrder = memoizePerObject((build: GraphileBuild.Build): PgTable[] => {
  const rankOf = ({ extensions, codec }: PgTable) => [!extensions?.tags?.name, oidOf(codec)];
  return tablesOf(build).sort((one, other) => compareRanks(rankOf(one), rankOf(other)));
});

/**
 * Functions named by a comment first, then those that clients see, shorter names (which others extend), names that need no quotes in
 * SQL, plurals; then alphabetically.
 */
function sortByPrecedence<Some extends SchemaResource>(
  resources: Some[],
  nameOf: (resource: Some) => string,
  { inflection }: GraphileBuild.Build,
): Some[] {
  const ranked = resources.map((resource) => {
    const { tags, canSelect, canExecute, isServerOnly: isForServers } = resource.extensions ?? {};
    const sqlName = sqlNameOf(resource);
    const isSeen = canSelect !== false && canExecute !== false && !isForServers;
    const isSingular = inflection.pluralize(sqlName) !== sqlName;
    const rank = [!tags?.name, !isSeen, nameOf(resource).length, !UNQUOTED_PATH.test(sqlName), isSingular, sqlName];
    return { resource, rank };
  });
  return ranked.sort((one, other) => compareRanks(one.rank, other.rank)).map(({ resource }) => resource);
}

type Rank = readonly (string | number | boolean)[];

/** The order of ranks whose first parts decide. */
export function compareRanks(one: Rank, other: Rank): number {
  const at = one.findIndex((part, index) => part !== other[index]);
  return at < 0 ? 0 : one[at]! < other[at]! ? -1 : 1;
}

function rangeTypeNames({ inflection }: GraphileBuild.Build, name: string): string[] {
  return [`${name}Range`, `${name}RangeBound`].flatMap((type) => [type, inflection.inputType(type)]);
}

function isObjectDomain({ domainOfCodec }: Codec): boolean {
  if (!domainOfCodec) return false;
  return (
    Boolean(domainOfCodec.attributes || domainOfCodec.rangeOfCodec) ||
    OBJECT_CODECS.has(domainOfCodec) ||
    isObjectDomain(domainOfCodec)
  );
}

/** True if the function has a connection type of its own, since it does not return rows of a table. */
function hasOwnConnection({ isUnique, codec }: SchemaResource): boolean {
  return !isUnique && !codec.arrayOfCodec && (!codec.attributes || codec.isAnonymous === true);
}

/** A preferred name, and all the names that derive from it. */
type NameClaim = {
  readonly preferred: string;
  /** The suffix that is appended if the name is taken. */
  readonly suffix: string;
  readonly derivedNames: (name: string) => readonly string[];
  readonly rename: (name: string) => void;
};

/** The types that a plugin adds, by keys of its own. Names of the database and of other plugins are taken. */
export class AddedTypes<Key> {
  readonly namesOf = memoizePerObject((_build: GraphileBuild.Build) => new Map<Key, string>());

  /** Returns the free name by which the plugin registers the type. */
  claimName(build: GraphileBuild.Build, key: Key, preferred: string): string {
    const name = freeTypeName(build, preferred);
    this.namesOf(build).set(key, name);
    return name;
  }

  registerInput(
    build: GraphileBuild.Build,
    key: Key,
    preferred: string,
    scope: GraphileBuild.ScopeInputObject,
    spec: Parameters<GraphileBuild.Build["registerInputObjectType"]>[2],
  ): void {
    build.registerInputObjectType(this.claimName(build, key, preferred), scope, spec, null);
  }

  /** Registers an enum whose values are their names. */
  registerEnum(
    build: GraphileBuild.Build,
    key: Key,
    preferred: string,
    description: string,
    members: GraphQLEnumValueConfigMap,
  ): void {
    const values = Object.entries(members).map(([name, member]) => [name, { ...member, value: name }]);
    const spec = () => ({ description, values: Object.fromEntries(values) });
    build.registerEnumType(this.claimName(build, key, preferred), {}, spec, null);
  }

  inputOf(build: GraphileBuild.Build, key: Key): GraphQLInputType {
    return build.getInputTypeByName(this.namesOf(build).get(key)!);
  }
}

/** The name of a type that a plugin adds: underscores are appended until no type of the database or of another plugin has it. */
export function freeTypeName(build: GraphileBuild.Build, preferred: string): string {
  return build.getTypeMetaByName(preferred) === null ? preferred : freeTypeName(build, `${preferred}_`);
}

/** Assigns names in order; a later claim is renamed until none of its derived names is taken. */
export function assignUniqueNames(
  claims: readonly NameClaim[],
  isTaken: (name: string) => boolean = () => false,
): void {
  const assigned = new Set<string>();
  const isFree = (name: string) => !assigned.has(name) && !isTaken(name);
  for (const { preferred, suffix, derivedNames, rename } of claims) {
    let name = preferred;
    for (let number = 1; !derivedNames(name).every(isFree); number += 1) {
      name = `${preferred}${suffix}${number === 1 ? "" : number}`;
    }
    if (name !== preferred) rename(name);
    for (const derived of derivedNames(name)) assigned.add(derived);
  }
}

/** The items by their names, in order; a later item is renamed until its name is free. */
export function withUniqueNames<Item>(
  items: readonly (readonly [name: string, item: Item])[],
  isTaken?: (name: string) => boolean,
): ReadonlyMap<string, Item> {
  const names = items.map(([name]) => name);
  const claims = items.map(([preferred], index) => ({
    preferred,
    suffix: "_",
    derivedNames: (name: string) => [name],
    rename: (name: string) => {
      names[index] = name;
    },
  }));
  assignUniqueNames(claims, isTaken);
  return new Map(items.map(([, item], index) => [names[index]!, item]));
}

/** The unique names of `withUniqueNames` by the items. */
export function uniqueNamesOf<Item>(
  items: readonly (readonly [name: string, item: Item])[],
  isTaken?: (name: string) => boolean,
): ReadonlyMap<Item, string> {
  return new Map([...withUniqueNames(items, isTaken)].map(([name, item]) => [item, name]));
}

import { isEnumCodec, type PgCodecAnyScalar, type PgCodecWithAttributes, TYPES } from "postgraphile/@dataplan/pg";
import { oncePer } from "../engine/once-per.ts";
import type { Claim } from "./free-names.ts";
import { type Codec, isTable, type Resource, sqlNameOf, type Table } from "./table.ts";
import { TIMES } from "./time-codec.ts";

type Build = GraphileBuild.Build;
type Given<Key extends object> = WeakMap<Key, string>;

/** Of these core has objects, which need an input beside them. */
const OBJECTS: ReadonlySet<unknown> = new Set([
  TIMES.interval,
  ...(["point", "line", "lseg", "box", "path", "polygon", "circle"] as const).map((name) => TYPES[name]),
]);

/** What core calls the values that Postgres has ranges of. */
const IN_RANGES: Readonly<Record<string, string>> = {
  int4: "Int",
  int8: "BigInt",
  numeric: "BigFloat",
  date: "Date",
  timestamptz: "Datetime",
  timestamp: "LocalDateTime",
};

const UNQUOTED = /^[a-z0-9_.]+$/;

/** One row of each table, in the names of fields and inputs. */
export function thingClaims(build: Build, given: Given<Resource>): Claim[] {
  const { inflection } = build;
  return tablesInOrder(build).map((table) => ({
    wanted: inflection._singularizedResourceName(table),
    suffix: "_record",
    needs: (name) => [
      `Query.${inflection.camelCase(name)}`,
      `Query.${inflection.allRowsOf(name)}`,
      `Mutation.${inflection.camelCase(`create-${name}`)}`,
    ],
    rename: (name) => given.set(table, name),
  }));
}

/** The fields of functions: those that read, those that write, and those of each type. */
export function functionClaims(build: Build, given: Given<Resource>): Claim[][] {
  const { inflection } = build;
  const rowOf = ({ parameters }: Resource) => {
    const codec: Codec | undefined = parameters[0]?.codec;
    return codec?.attributes && codec.extensions?.isTableLike !== false ? codec : null;
  };
  const groups = Map.groupBy(functionsOf(build), (resource) => (resource.isMutation ? "mutation" : rowOf(resource)));
  return [...groups].map(([group, functions]) =>
    functions.map((resource) => ({
      wanted:
        group === null || group === "mutation"
          ? inflection.customQueryField({ resource })
          : inflection.computedAttributeField({ resource }),
      suffix: "_",
      needs: (name) => [name],
      rename: (name) => given.set(resource, name),
    })),
  );
}

type TypeClaim = Claim & { readonly codec: Codec };

/**
 * Tables come first, then other rows, which are composite types and what functions return, then enums and domains. But a type that
 * is older than every table of its name goes before the tables: what clients know does not change by what is added.
 */
export function typeClaims(build: Build, given: Given<Codec>): Claim[] {
  const tables = tablesInOrder(build).map(({ codec }) => codec);
  const isOfTable: ReadonlySet<Codec> = new Set(tables);
  const others = [...build.allPgCodecs].filter(
    (codec: Codec): codec is PgCodecWithAttributes => Boolean(codec.attributes) && !isOfTable.has(codec),
  );
  const ofTables = tables.map((codec) => rowTypeClaim(build, given, codec, true));
  const ofTypes = [
    ...others.map((codec) => rowTypeClaim(build, given, codec, false)),
    ...valueTypeClaims(build, given),
  ];
  const tablesByName = Map.groupBy(ofTables, ({ wanted }) => wanted);
  const { elder = [], younger = [] } = Object.groupBy(ofTypes, ({ wanted, codec }) => {
    const rivals = tablesByName.get(wanted) ?? [];
    return rivals.length > 0 && rivals.every((rival) => oidOf(codec) < oidOf(rival.codec)) ? "elder" : "younger";
  });
  return [...elder, ...ofTables, ...younger];
}

/** All kinds of things are numbered by one counter of Postgres, in the order of their creation. */
function oidOf({ extensions }: Codec): number {
  return Number(extensions?.oid ?? Number.POSITIVE_INFINITY);
}

function rowTypeClaim(
  { inflection }: Build,
  given: Given<Codec>,
  codec: PgCodecWithAttributes,
  isOfTable: boolean,
): TypeClaim {
  return {
    codec,
    wanted: inflection.tableType(codec),
    suffix: "Record",
    needs: (name) => [
      name,
      inflection.connectionType(name),
      inflection.edgeType(name),
      inflection.inputType(name),
      inflection.patchType(name),
      inflection.baseInputType(name),
      ...(isOfTable ? [inflection.inputType(`${name}Filter`)] : []),
    ],
    rename: (name) => given.set(codec, name),
  };
}

/** The types of enums and domains. */
function valueTypeClaims(build: Build, given: Given<Codec>): TypeClaim[] {
  const { inflection } = build;
  const codecs = [...build.allPgCodecs] as Codec[];
  const inRanges = new Set(codecs.map(({ rangeOfCodec }) => rangeOfCodec));
  const values = codecs.filter(
    (codec): codec is PgCodecAnyScalar => !codec.attributes && Boolean(isEnumCodec(codec) || codec.domainOfCodec),
  );
  return values.map((codec) => ({
    codec,
    wanted: inflection.scalarCodecTypeName(codec),
    suffix: "Type",
    needs: (name) => [
      name,
      ...(isObject(codec)
        ? [inflection.connectionType(name), inflection.edgeType(name), inflection.inputType(name)]
        : []),
      ...(inRanges.has(codec) ? typesOfRange(build, name) : []),
    ],
    rename: (name) => given.set(codec, name),
  }));
}

/** The inputs and connections of functions: those in the place of what a table would have, and the others. */
export function functionTypeClaims(build: Build, given: Given<Resource>): { inPlace: Claim[]; others: Claim[] } {
  const { inflection } = build;
  const ofTables = new Set(tableMutations(build).map((mutation) => inflection.tableMutation(mutation)));
  const { inPlace = [], others = [] } = Object.groupBy(functionsOf(build), (resource) =>
    resource.isMutation && ofTables.has(inflection.customMutationField({ resource })) ? "inPlace" : "others",
  );
  const claim = (resource: Resource): Claim => ({
    wanted: inflection.functionType(resource),
    suffix: "Function",
    needs: (name) =>
      resource.isMutation
        ? [inflection.inputType(name)]
        : hasConnection(resource)
          ? [inflection.connectionType(name), inflection.edgeType(name)]
          : [],
    rename: (name) => given.set(resource, name),
  });
  return { inPlace: inPlace.map(claim), others: others.map(claim) };
}

/** Names that follow from what has its name already: the inputs of tables, and ranges. */
export function derivedTypes(build: Build): ReadonlySet<string> {
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
    const name = IN_RANGES[rangeOfCodec?.name ?? ""];
    return name ? typesOfRange(build, inflection.builtin(name)) : [];
  });
  return new Set([...inputs, ...ranges]);
}

function tableMutations(build: Build): { verb: "create" | "update"; table: Table }[] {
  return tablesInOrder(build).flatMap((table) => (["create", "update"] as const).map((verb) => ({ verb, table })));
}

const functionsOf = oncePer((build: Build): Resource[] => {
  const functions = (Object.values(build.pgResources) as Resource[]).filter(({ parameters }) => parameters);
  return inOrder(functions, (resource) => build.inflection.functionType(resource), build);
});

/** By what a comment names; then what was created first, so that no table takes the name of another when it is added. */
const tablesInOrder = oncePer((build: Build): Table[] => {
  const rankOf = ({ extensions, codec }: Table) => [!extensions?.tags?.name, oidOf(codec)];
  const tables = Object.values(build.pgResources).filter(isTable);
  return tables.sort((one, other) => compare(rankOf(one), rankOf(other)));
});

/**
 * By what a comment names, what clients see, short names, which others are made of, names that SQL takes without quotes,
 * plurals; the alphabet.
 */
function inOrder<Some extends Resource>(
  resources: Some[],
  nameOf: (resource: Some) => string,
  { inflection }: Build,
): Some[] {
  const ranked = resources.map((resource) => {
    const { tags, canSelect, canExecute, isForServers } = resource.extensions ?? {};
    const sqlName = sqlNameOf(resource);
    const isSeen = canSelect !== false && canExecute !== false && !isForServers;
    const isSingular = inflection.pluralize(sqlName) !== sqlName;
    const rank = [!tags?.name, !isSeen, nameOf(resource).length, !UNQUOTED.test(sqlName), isSingular, sqlName];
    return { resource, rank };
  });
  return ranked.sort((one, other) => compare(one.rank, other.rank)).map(({ resource }) => resource);
}

type Rank = readonly (string | number | boolean)[];

function compare(one: Rank, other: Rank): number {
  const at = one.findIndex((part, index) => part !== other[index]);
  return at < 0 ? 0 : one[at]! < other[at]! ? -1 : 1;
}

function typesOfRange({ inflection }: Build, name: string): string[] {
  return [`${name}Range`, `${name}RangeBound`].flatMap((type) => [type, inflection.inputType(type)]);
}

function isObject({ domainOfCodec }: Codec): boolean {
  if (!domainOfCodec) return false;
  return (
    Boolean(domainOfCodec.attributes || domainOfCodec.rangeOfCodec) ||
    OBJECTS.has(domainOfCodec) ||
    isObject(domainOfCodec)
  );
}

/** One of its own, since what it returns is no row of a table. */
function hasConnection({ isUnique, codec }: Resource): boolean {
  return !isUnique && !codec.arrayOfCodec && (!codec.attributes || codec.isAnonymous === true);
}

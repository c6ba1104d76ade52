import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import { SafeError } from "grafast";
import { castListItems } from "./codecs.ts";
import type { Codec } from "./table.ts";

declare global {
  namespace GraphileBuild {
    interface PgCodecAttributeTags {
      /** The dimensions of an array whose declaration does not have them, as in a view or after a restore by pg_restore. */
      dimensions: string;
    }
  }
}

/** Postgres's limit. */
const MAX_DIMENSIONS = 6;

export const ArrayDimensionsPlugin: GraphileConfig.Plugin = {
  name: "ArrayDimensionsPlugin",
  description: "A column or domain that is declared as an array of several dimensions is a list of lists",
  after: ["PgCodecsPlugin"],
  gather: {
    hooks: {
      pgCodecs_PgCodec(_info, { pgCodec, pgType }) {
        if (!pgCodec.arrayOfCodec || dimensionsOf(pgCodec) > 1) return;
        refuseSeveralDimensions(pgCodec);
        const dimensions = pgType.typtype === "d" ? (pgType.typndims ?? 0) : 0;
        // A colon occurs in no other codec's name.
        if (dimensions > 1) addDimensions(pgCodec, { ...pgCodec, name: `${pgCodec.name}:flat` }, dimensions);
      },
      pgCodecs_attribute(_info, { pgAttribute, attribute }) {
        const dimensions = Number(attribute.extensions?.tags?.dimensions ?? pgAttribute.attndims ?? 0);
        const codec: Codec = attribute.codec;
        const isList = codec.arrayOfCodec && dimensionsOf(codec) === 1;
        if (isList && dimensions > 1 && dimensions <= MAX_DIMENSIONS)
          attribute.codec = toDimensional(codec, dimensions);
      },
    },
  },
};

/** The codec that an array of several dimensions was made from, of the same type in Postgres. Domains over it keep the property. */
const FLAT = Symbol("flat codec");
type ArrayCodec = Codec & { readonly [FLAT]?: Codec };

const dimensionalCodecs = new WeakMap<Codec, Map<number, Codec>>();
const checkedCodecs = new WeakSet<Codec>();

/** The codec of a list without lists; the same codec unless it has several dimensions. */
export function toFlatCodec(codec: ArrayCodec): Codec {
  return codec[FLAT] ?? codec;
}

/** The number of nested lists, without lists that are the values of a domain. */
export function dimensionsOf(codec: ArrayCodec): number {
  return codec[FLAT] ? 1 + dimensionsOf(codec.arrayOfCodec!) : 1;
}

/** The codec of the items of an array, whatever its dimensions. */
export function itemCodecOf(codec: Codec): Codec {
  return toFlatCodec(codec).arrayOfCodec!;
}

function toDimensional(flat: Codec, dimensions: number): Codec {
  if (dimensions === 1) return flat;
  const existing = dimensionalCodecs.get(flat)?.get(dimensions);
  if (existing) return existing;
  const codec: Codec = { ...flat, name: `${flat.name}${"[]".repeat(dimensions - 1)}` };
  addDimensions(codec, flat, dimensions);
  dimensionalCodecs.set(flat, (dimensionalCodecs.get(flat) ?? new Map()).set(dimensions, codec));
  return codec;
}

function addDimensions(codec: Codec, flat: Codec, dimensions: number): void {
  const item = flat.arrayOfCodec!;
  const cast = (array: SQL) => castNested(array, item, dimensions);
  Object.assign(codec, {
    [FLAT]: flat,
    arrayOfCodec: toDimensional(flat, dimensions - 1),
    castFromPg: cast,
    listCastFromPg: castListItems(cast),
    fromPg: (text: string) => readNested(text, dimensions, item),
    toPg: (value: unknown) => writeNested(value, dimensions, flat),
  });
}

/** An array with other dimensions than declared stays the text of the array, which is refused. */
function castNested(array: SQL, item: Codec, dimensions: number): SQL {
  const json = item.castFromPg
    ? castItems(array, item.castFromPg, dimensions)
    : sql`pg_catalog.array_to_json(${array}::pg_catalog.text[])`;
  return sql`(case when pg_catalog.array_ndims(${array}) = ${sql.literal(dimensions)} then ${json}::pg_catalog.text
    when ${array} is not null and pg_catalog.array_ndims(${array}) is null then '[]' else ${array}::pg_catalog.text end)`;
}

function castItems(array: SQL, cast: (item: SQL) => SQL, dimensions: number, subscripts: readonly SQL[] = []): SQL {
  if (subscripts.length === dimensions) {
    const path = subscripts.map((subscript) => sql`[${subscript}]`);
    return sql`(${cast(sql`(${array})${sql.join(path, "")}`)})::pg_catalog.text`;
  }
  const subscript = sql.identifier(Symbol("subscript"));
  const items = castItems(array, cast, dimensions, [...subscripts, subscript]);
  const dimension = sql.literal(subscripts.length + 1);
  return sql`(select pg_catalog.json_agg(${items} order by ${subscript}) from pg_catalog.generate_subscripts(${array}, ${dimension}) as ${subscript})`;
}

function readNested(text: string, dimensions: number, item: Codec): unknown {
  // The text of an array begins with a brace, or with bounds such as [0:1].
  if (!/^\[[[\]]/.test(text)) throw otherDimensions(text, dimensions);
  const read = (value: unknown): unknown =>
    Array.isArray(value) ? value.map(read) : value === null ? null : item.fromPg(value as string);
  return read(JSON.parse(text));
}

function writeNested(value: unknown, dimensions: number, flat: Codec): unknown {
  if (value === null || dimensions === 1) return value === null ? "NULL" : flat.toPg(value);
  const delimiter = flat.arrayOfCodec!.name === "box" ? ";" : ",";
  return `{${(value as unknown[]).map((each) => writeNested(each, dimensions - 1, flat)).join(delimiter)}}`;
}

/** GraphQL has no type for a list whose items may be lists. Casts of the items would lose the dimensions. */
function refuseSeveralDimensions(codec: Codec): void {
  // Codecs of built-in types are shared by all schemas.
  if (checkedCodecs.has(codec)) return;
  checkedCodecs.add(codec);
  const { fromPg, castFromPg } = codec;
  codec.fromPg = (text: string) => {
    if (/^(\[[^{]*=)?\{\{/.test(text)) throw otherDimensions(text, 1);
    return fromPg(text);
  };
  if (castFromPg) {
    codec.castFromPg = (array, isNotNull) =>
      sql`(case when pg_catalog.array_ndims(${array}) operator(pg_catalog.>) 1 then ${array}::pg_catalog.text else ${castFromPg(array, isNotNull)} end)`;
  }
}

function otherDimensions(text: string, declared: number): SafeError {
  const found = /\{+/.exec(text)?.[0].length ?? 1;
  return new SafeError(
    `The array has ${countOf(found)}, and its column is declared with ${countOf(declared)}: declare it as integer[][], for example, or write @dimensions ${found} in its comment.`,
  );
}

function countOf(dimensions: number): string {
  return dimensions === 1 ? "one dimension" : `${dimensions} dimensions`;
}

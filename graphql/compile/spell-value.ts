import { isEnumCodec, TYPES } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import {
  GraphQLBoolean,
  type GraphQLEnumType,
  GraphQLFloat,
  GraphQLID,
  GraphQLInt,
  type GraphQLNamedType,
  type GraphQLOutputType,
  type GraphQLScalarType,
  GraphQLString,
  getNamedType,
  getNullableType,
  isEnumType,
  isListType,
  isNonNullType,
  isScalarType,
} from "grafast/graphql";
import pg from "pg";
import {
  baseCodecOf,
  type Codec,
  dimensionsOf,
  isIdCodec,
  isInstantCodec,
  itemCodecOf,
  takesExactNumbers,
  toOriginalCodec,
} from "#plugins";
import { parseJsonExactly } from "#runtime/json";
import { NotCompiled } from "./not-compiled.ts";

/** Reading an unknown setting fails the statement: plain SQL has no function that raises an error. */
export const REFUSE = sql`pg_catalog.current_setting('graphql.refused')`;
/** Fails a statement whose response becomes too large. */
export const REFUSE_SIZE = sql`pg_catalog.current_setting('graphql.too_large')`;

/** Fails a write of one row whose key several rows have. */
export const REFUSE_SEVERAL_ROWS = sql`pg_catalog.current_setting('graphql.several_rows')`;

export function isRefusedSize(error: unknown): boolean {
  return isUnknownSetting(error, "graphql.too_large");
}

export function areSeveralRowsRefused(error: unknown): boolean {
  return isUnknownSetting(error, "graphql.several_rows");
}

function isUnknownSetting(error: unknown, name: string): boolean {
  return error instanceof pg.DatabaseError && error.code === "42704" && error.message.includes(name);
}

/** Spellings by the rules of JavaScript, where those of Postgres differ. */
type SpelledValue = {
  /** JSON text; null when the value is null. */
  readonly text: SQL;
  /** It contains JSON of the database, whose white space is Postgres's. */
  readonly holdsJson?: true;
};

/** How a value of this codec is written in the response as a value of the type. */
export function spellValue(value: SQL, codec: Codec, type: GraphQLOutputType): SpelledValue {
  const shown = getNullableType(type);
  if (dimensionsOf(codec) > 1) return spellNestedLists(value, codec, getNamedType(shown), type);
  if (codec.arrayOfCodec && isListType(shown)) return spellList(value, codec.arrayOfCodec, shown.ofType);
  if (isEnumType(shown) && isEnumCodec(codec)) return { text: spellEnum(value, shown) };
  if (isScalarType(shown)) return spellScalar(value, codec, shown);
  throw new NotCompiled("value", `${codec.name} as ${String(type)}`);
}

/** Returns the text or JSON null. In a non-null position it refuses the operation, since a null would replace its parent and add an error. */
export function orNull(text: SQL, type: GraphQLOutputType): SQL {
  return isNonNullType(type) ? sql`coalesce(${text}, ${REFUSE})` : sql`coalesce(${text}, 'null')`;
}

export function quoted(text: SQL): SQL {
  return sql`('"' || ${text} || '"')`;
}

const UNESCAPED_TYPES: ReadonlySet<string> = new Set(["int2", "int4", "int8", "numeric", "uuid"]);
const TEXT_SERIALIZERS: ReadonlySet<unknown> = new Set([GraphQLString.serialize, GraphQLID.serialize]);
const INTEGER_SERIALIZERS: ReadonlySet<unknown> = new Set([GraphQLInt.serialize, Number]);

function spellScalar(value: SQL, codec: Codec, type: GraphQLScalarType): SpelledValue {
  const { fromPg } = codec;
  const { serialize } = type;
  const base = baseCodecOf(toOriginalCodec(codec));
  // The column may have another type than when the statement was written, whose text would be no JSON of this one.
  const typed = sql`${value}::${base.sqlType}`;
  if (fromPg === parseJsonExactly) return { text: castToText(typed, codec), holdsJson: true };
  if (fromPg === TYPES.boolean.fromPg && serialize === GraphQLBoolean.serialize)
    return { text: sql`${typed}::pg_catalog.text` };
  if (fromPg === TYPES.int.fromPg && INTEGER_SERIALIZERS.has(serialize))
    return { text: sql`${typed}::pg_catalog.text` };
  if (fromPg === TYPES.float.fromPg && serialize === GraphQLFloat.serialize) return { text: spellFloat(value) };
  if (fromPg === TYPES.bytea.fromPg)
    return { text: quoted(withoutLineBreaks(sql`pg_catalog.encode(${value}, 'base64')`)) };
  if (fromPg === TYPES.text.fromPg && isInstantCodec(codec)) return { text: spellInstant(value) };
  const isAddress = fromPg === TYPES.inet.fromPg;
  const isText = fromPg === TYPES.text.fromPg || isAddress || isIdCodec(codec);
  if (!isText || !(TEXT_SERIALIZERS.has(serialize) || takesExactNumbers(type)))
    throw new NotCompiled("value", `${codec.name} as ${type.name}`);
  if (isAddress) return { text: spellAddress(typed) };
  if (UNESCAPED_TYPES.has(base.name)) return { text: quoted(sql`${typed}::pg_catalog.text`) };
  return { text: spellText(castToText(value, codec)) };
}

/** Core omits the mask of a single host. */
function spellAddress(address: SQL): SQL {
  return spellText(sql`pg_catalog.regexp_replace(${address}::pg_catalog.text, '/(32|128)$', '')`);
}

/** Casts the value to text as core's queries do. */
export function castToText(value: SQL, { castFromPg }: Codec): SQL {
  return sql`${castFromPg ? castFromPg(value) : value}::pg_catalog.text`;
}

function spellText(text: SQL): SQL {
  return sql`pg_catalog.to_json(${text})::pg_catalog.text`;
}

/** A JSON string of the text that core selects. */
export function spellAsString(value: SQL, codec: Codec): SQL {
  const base = baseCodecOf(codec);
  if (UNESCAPED_TYPES.has(base.name)) return quoted(sql`${value}::${base.sqlType}::pg_catalog.text`);
  if (isInstantCodec(codec)) return sql`pg_catalog.to_json(${value}::${base.sqlType})::pg_catalog.text`;
  return spellText(castToText(value, codec));
}

/** `encode` breaks lines after 76 characters. `translate` takes several times as long as `replace`. */
export function withoutLineBreaks(base64: SQL): SQL {
  return sql`pg_catalog.replace(${base64}, pg_catalog.chr(10), '')`;
}

/** The names in the schema may differ from the labels. A label that the schema does not have was added since. */
function spellEnum(value: SQL, type: GraphQLEnumType): SQL {
  const values = type.getValues();
  if (values.every(({ name, value: label }) => name === label)) return spellText(sql`${value}::pg_catalog.text`);
  const cases = values.map(
    ({ name, value: label }) => sql`when ${textLiteral(String(label))} then ${textLiteral(`"${name}"`)}`,
  );
  return sql`(case when ${value} is null then null else case ${value}::pg_catalog.text ${sql.join(cases, " ")} else ${REFUSE} end end)`;
}

/** Characters of JSON that `sql.literal` would make a parameter of. */
const PUNCTUATION: ReadonlyMap<string, SQL> = new Map([
  ["{", sql`'{'`],
  ["}", sql`'}'`],
  ["[", sql`'['`],
  ["]", sql`']'`],
  [",", sql`','`],
]);
const AROUND_PUNCTUATION = /(?<=[{}[\],])|(?=[{}[\],])/;
const CONSTANT_TEXT = /^[-\w@!$ :".{}[\],]*$/;

/** A constant for JSON text of names; a parameter for any other text. Postgres concatenates constants on lines of their own. */
export function textLiteral(text: string): SQL {
  if (!CONSTANT_TEXT.test(text)) return sql`${sql.value(text)}::pg_catalog.text`;
  const parts = text.split(AROUND_PUNCTUATION);
  return sql.join(
    parts.map((part) => PUNCTUATION.get(part) ?? sql.literal(part)),
    "\n",
  );
}

/** JavaScript writes an exponent from 1e21 and below 1e-6, and Postgres from 1e15 and below 1e-4. JSON has no NaN and no infinity. */
function spellFloat(value: SQL): SQL {
  const text = sql`${value}::pg_catalog.text`;
  const number = sql`${text}::pg_catalog.float8`;
  return sql`(case when ${value} is null then null when ${number} operator(pg_catalog.=) 0 then '0'
    when pg_catalog.abs(${number}) operator(pg_catalog.>=) 1e-4 and pg_catalog.abs(${number}) operator(pg_catalog.<) 1e15 then ${number}::pg_catalog.text
    when ${number} operator(pg_catalog.=) any ('{NaN,Infinity,-Infinity}') then ${REFUSE}
    when pg_catalog.abs(${number}) operator(pg_catalog.>=) 1e-6 and pg_catalog.abs(${number}) operator(pg_catalog.<) 1e21 then ${number}::pg_catalog.text::numeric::pg_catalog.text
    else pg_catalog.replace(${number}::pg_catalog.text, 'e-0', 'e-') end)`;
}

const FIRST_INSTANT = sql`pg_catalog.timestamptz '0001-01-01 00:00:00+00'`;
const LAST_INSTANT = sql`pg_catalog.timestamptz '9999-12-31 23:59:59.999999+00'`;

/** Writes the text of `toIsoTime`: with milliseconds, or microseconds where there are any. Refuses other years and infinity. */
function spellInstant(value: SQL): SQL {
  const text = sql`pg_catalog.to_char(${value} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;
  return sql`(case when ${value} between ${FIRST_INSTANT} and ${LAST_INSTANT}
    then ${quoted(sql`pg_catalog.replace(${text}, '000Z', 'Z')`)} when ${value} is not null then ${REFUSE} end)`;
}

/** A list of lists has no type in GraphQL, whatever the column's declaration. */
function spellList(list: SQL, codec: Codec, itemType: GraphQLOutputType): SpelledValue {
  const [items, item] = [sql.identifier(Symbol("items")), sql.identifier("item")];
  const spelled = spellValue(sql`${items}.${item}`, codec, itemType);
  const each = orNull(spelled.text, itemType);
  if (isVerbatimText(codec) && isScalarType(getNullableType(itemType))) {
    // `array_position` itself refuses a list of lists.
    const isRefused = isNonNullType(itemType)
      ? sql`pg_catalog.array_position(${list}::pg_catalog.text[], null) is not null`
      : sql`pg_catalog.array_ndims(${list}) operator(pg_catalog.>) 1`;
    const text = sql`(case when ${isRefused} then ${REFUSE} else pg_catalog.array_to_json(${list}::pg_catalog.text[])::pg_catalog.text end)`;
    return { text };
  }
  const all = sql`(select coalesce('[' operator(pg_catalog.||) pg_catalog.string_agg(${each}, ',' order by ${items}."position") operator(pg_catalog.||) ']', '[]')
    from pg_catalog.unnest(${list}) with ordinality as ${items}(${item}, "position"))`;
  const text = sql`(case when ${list} is null then null when pg_catalog.array_ndims(${list}) operator(pg_catalog.>) 1 then ${REFUSE} else ${all} end)`;
  return { ...spelled, text };
}

/** Lists within lists have nulls where Postgres has them; other types of items are completed by graphql-js. */
function spellNestedLists(list: SQL, codec: Codec, itemType: GraphQLNamedType, type: GraphQLOutputType): SpelledValue {
  const item = itemCodecOf(codec);
  const isInteger = item.fromPg === TYPES.int.fromPg && itemType === GraphQLInt;
  const isText = isVerbatimText(item) && itemType === GraphQLString;
  if (!(isInteger || isText) || String(type).includes("!")) throw new NotCompiled("value", `${codec.name} as ${type}`);
  const json = sql`pg_catalog.array_to_json(${list}::${isInteger ? sql`int[]` : sql`text[]`})::pg_catalog.text`;
  const dimensions = sql`coalesce(pg_catalog.array_ndims(${list}), ${sql.literal(dimensionsOf(codec))})`;
  return {
    text: sql`(case when ${dimensions} <> ${sql.literal(dimensionsOf(codec))} then ${REFUSE} else ${json} end)`,
  };
}

function isVerbatimText({ fromPg, castFromPg }: Codec): boolean {
  return fromPg === TYPES.text.fromPg && (!castFromPg || castFromPg === TYPES.text.castFromPg);
}

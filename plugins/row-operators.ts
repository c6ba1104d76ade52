import { isEnumCodec, listOfCodec, TYPES } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import type { SearchOperator } from "#planner/intent";
import { makeSearchSql, type SearchedPart, type SearchQuery } from "#planner/search-sql";
import { memoizePerObject } from "#runtime";
import { itemCodecOf } from "./ArrayDimensionsPlugin.ts";
import { baseCodecOf } from "./codecs.ts";
import { toOriginalCodec } from "./IdScalarPlugin.ts";
import { equals, type OperatorName, operatorOf } from "./operators.ts";
import type { Codec } from "./table.ts";

/** Adds a value to the statement, or a parameter whose values are known later. */
export type BindValue = (value: unknown, codec: Codec) => SQL;

/** The operators that a type has besides `isNull`. */
export type OperatorFamily = "ordered" | "equality" | "text" | "list" | "range" | "json" | "full text" | "none";

type OperatorOperand = "value" | "list of values" | "text" | "search";

export type RowOperator = {
  readonly operand: OperatorOperand;
  readonly description: string;
  readonly condition: (column: SQL, codec: Codec, value: unknown, bind: BindValue) => SQL;
};

type RowOperators = Readonly<Record<string, RowOperator>>;

const TEXT_TYPES: ReadonlySet<string> = new Set(["text", "varchar", "bpchar", "name", "citext"]);
/** Core takes every type that it does not know for ordered; `point` does not even have equality. */
const ORDERED_TYPES: ReadonlySet<string> = new Set(
  `int2 int4 int8 float4 float8 numeric money oid date time timetz timestamp timestamptz interval uuid inet cidr macaddr macaddr8
  bytea bit varbit pg_lsn xid8 ltree`.split(/\s+/),
);

/** The family of the type beneath domains. */
export const operatorFamilyOf = memoizePerObject((codec: Codec): OperatorFamily => {
  const base = toOriginalCodec(baseCodecOf(toOriginalCodec(codec)));
  const type = base.extensions?.pg?.name ?? base.name;
  if (base.arrayOfCodec) return isComparableItem(itemCodecOf(base)) ? "list" : "none";
  if (base.rangeOfCodec) return "range";
  if (base.attributes) return "none";
  if (type === "jsonb") return "json";
  if (type === "tsvector") return "full text";
  if (TEXT_TYPES.has(type)) return "text";
  if (ORDERED_TYPES.has(type) || isEnumCodec(base)) return "ordered";
  return type === "bool" ? "equality" : "none";
});

function isComparableItem(codec: Codec): boolean {
  return !codec.arrayOfCodec && operatorFamilyOf(codec) !== "none";
}

function compare(operator: OperatorName, description: string): RowOperator {
  return {
    operand: "value",
    description,
    condition: (column, codec, value, bind) => sql`(${column} ${operatorOf(codec, operator)} ${bind(value, codec)})`,
  };
}

function matchText(operator: OperatorName, description: string): RowOperator {
  return {
    operand: "text",
    description,
    condition: (column, codec, value, bind) =>
      sql`(${column} ${operatorOf(codec, operator)} ${bind(value, TYPES.text)})`,
  };
}

export const SEARCH_SQL = makeSearchSql<SQL>({
  sql,
  join: (pieces, separator) => sql.join([...pieces], separator),
  literal: (text) => sql.literal(text),
});

type TextSearch = { readonly query: unknown; readonly language?: unknown };

export function searchQueryOf(operator: SearchOperator, value: unknown, bind: BindValue): SearchQuery<SQL> {
  const { query, language = null } = value as TextSearch;
  return {
    operator,
    configuration: language === null ? null : bind(language, TYPES.regconfig),
    words: bind(query, TYPES.text),
  };
}

/** The form in which the words of a value are found. */
export function searchedFormOf(codec: Codec): SearchedPart<SQL>["form"] {
  switch (operatorFamilyOf(codec)) {
    case "full text":
      return "tsvector";
    case "text":
      return "text";
    case "json":
      return "json";
    default:
      return "other";
  }
}

/** True if the value's words are searched together with those of others; vectors have no text that could be joined. */
export function isSearched(codec: Codec): boolean {
  return ["text", "json", "list"].includes(operatorFamilyOf(codec));
}

function search(operator: SearchOperator, description: string): RowOperator {
  return {
    operand: "search",
    description,
    condition: (value, codec, words, bind) =>
      sql`(${SEARCH_SQL.found([{ form: searchedFormOf(codec), value }], searchQueryOf(operator, words, bind))})`,
  };
}

const EQUALITY: RowOperators = {
  eq: compare("=", "Equal."),
  neq: compare("<>", "Not equal; null is neither equal nor unequal."),
  in: {
    operand: "list of values",
    description: "Equal to one of the values.",
    condition: (column, codec, value, bind) =>
      sql`(${column} ${operatorOf(codec, "=")} any (${bind(value, listCodecOf(codec))}))`,
  },
  isdistinct: {
    operand: "value",
    description: "Not equal, where null equals null.",
    condition(column, codec, value, bind) {
      const compared = bind(value, codec);
      // `is distinct from` would take the `=` on the search path.
      return sql`(not coalesce(${equals(codec, column, compared)}, ${column} is null and ${compared} is null))`;
    },
  },
};

const ORDER: RowOperators = {
  gt: compare(">", "Greater, or later."),
  gte: compare(">=", "Greater or equal."),
  lt: compare("<", "Less, or earlier."),
  lte: compare("<=", "Less or equal."),
};

const CONTAINMENT: RowOperators = {
  cs: compare("@>", "Contains the value."),
  cd: compare("<@", "Is contained in the value."),
};

export const SEARCHES: Readonly<Record<SearchOperator, RowOperator>> = {
  fts: search("fts", "Full-text search with the operators of `to_tsquery`."),
  plfts: search("plfts", "Full-text search for all words."),
  phfts: search("phfts", "Full-text search for a phrase."),
  wfts: search("wfts", "Full-text search as in web search engines."),
  prefix: search("prefix", "Full-text search for all words; the last one may be the beginning of a word."),
};

const COMPARISON: RowOperators = { eq: EQUALITY.eq!, neq: EQUALITY.neq! };

/** The operators, with the names of the table interface. */
export const OPERATORS: Readonly<Record<OperatorFamily, RowOperators>> = {
  equality: EQUALITY,
  ordered: { ...EQUALITY, ...ORDER },
  text: {
    ...EQUALITY,
    ...ORDER,
    like: matchText("~~", "Matches the pattern; `%` is any text, `_` any character."),
    ilike: matchText("~~*", "As `like`, without regard to case."),
    match: matchText("~", "Matches the regular expression."),
    imatch: matchText("~*", "As `match`, without regard to case."),
    ...SEARCHES,
  },
  list: { ...COMPARISON, ...CONTAINMENT, ov: compare("&&", "Has an item in common with the value.") },
  range: {
    ...COMPARISON,
    ...CONTAINMENT,
    ov: compare("&&", "Overlaps the value."),
    sl: compare("<<", "Is strictly left of the value."),
    sr: compare(">>", "Is strictly right of the value."),
    nxr: compare("&<", "Does not extend to the right of the value."),
    nxl: compare("&>", "Does not extend to the left of the value."),
    adj: compare("-|-", "Is adjacent to the value."),
  },
  json: { ...COMPARISON, ...CONTAINMENT },
  "full text": SEARCHES,
  none: {},
};

const listCodecOf = memoizePerObject((codec: Codec): Codec => listOfCodec(codec as Parameters<typeof listOfCodec>[0]));

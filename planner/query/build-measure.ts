import type { SearchedPart } from "../intent/intent.ts";
import type {
  DistanceFunctionName,
  SearchedDocument,
  SearchedWords,
  ValueExpression,
  WherePredicate,
} from "../plan/selection.ts";
import { makeSearchSql, type SearchQuery } from "./search-sql.ts";
import { identifier, join, literal, operatorIn, parameter, qualifiedIdentifier, type Sql, sql } from "./sql.ts";

type BuildExpression = (value: ValueExpression) => Sql;

const DISTANCE_OPERATORS: Readonly<Record<Exclude<DistanceFunctionName, "similarity">, Sql>> = {
  "<->": sql`<->`,
  "<+>": sql`<+>`,
  "<=>": sql`<=>`,
  "<#>": sql`<#>`,
};

/** The value is cast, so that indexes with the operator can be used. */
export function buildDistance(
  { function: name, schema, of, to }: ValueExpression & { kind: "distance" },
  build: BuildExpression,
): Sql {
  const value = sql`cast(${parameter(to.parameter)} as ${qualifiedIdentifier(to.type)})`;
  if (name === "similarity") return sql`${identifier(schema, name)}(${build(of)}, ${value})`;
  return sql`(${build(of)} ${operatorIn(schema, DISTANCE_OPERATORS[name])} ${value})`;
}

const SEARCHES = makeSearchSql<Sql>({ sql, join, literal });

export const buildJoinedTexts = SEARCHES.joined;

/** The text search query. */
export function buildWords(words: SearchedWords): Sql {
  return SEARCHES.query(toSearchQuery(words));
}

function toSearchQuery({ operator, language, parameter: slot }: SearchedWords): SearchQuery<Sql> {
  return { operator, configuration: language === null ? null : buildConfiguration(language), words: parameter(slot) };
}

/** The configuration is quoted, since Postgres would read a number as an OID. */
export function buildConfiguration(language: string): Sql {
  return literal(/^\d+$/.test(language) ? `"${language}"` : language);
}

export function buildFoundInDocument(
  { document, words }: Extract<WherePredicate, { kind: "found in document" }>,
  build: BuildExpression,
): Sql {
  return SEARCHES.found(toParts(document, build), toSearchQuery(words));
}

export function buildRank({ document, words }: ValueExpression & { kind: "rank" }, build: BuildExpression): Sql {
  return SEARCHES.rank(toParts(document, build), toSearchQuery(words));
}

export function buildHighlight({ texts, words }: ValueExpression & { kind: "highlight" }, build: BuildExpression): Sql {
  return SEARCHES.highlight(texts.map(build), toSearchQuery(words));
}

function toParts(document: SearchedDocument, build: BuildExpression): SearchedPart<Sql>[] {
  return document.map(({ form, value }) => ({ form, value: build(value) }));
}

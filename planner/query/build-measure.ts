import type { SearchOperator } from "../intent.ts";
import type {
  DistanceFunctionName,
  SearchedPart,
  SearchedWords,
  ValueExpression,
  WherePredicate,
} from "../plan/selection.ts";
import {
  identifier,
  join,
  literal,
  NOTHING,
  operatorIn,
  parameter,
  qualifiedIdentifier,
  type Sql,
  sql,
} from "./sql.ts";

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

const QUERY_FUNCTIONS: Readonly<Record<SearchOperator, Sql>> = {
  fts: sql`pg_catalog.to_tsquery`,
  plfts: sql`pg_catalog.plainto_tsquery`,
  phfts: sql`pg_catalog.phraseto_tsquery`,
  wfts: sql`pg_catalog.websearch_to_tsquery`,
  prefix: sql`pg_catalog.plainto_tsquery`,
};

/** The text search query. */
export function buildWords({ operator, language, parameter: slot }: SearchedWords): Sql {
  const query = sql`${QUERY_FUNCTIONS[operator]}(${configurationArgument(language)}${parameter(slot)})`;
  if (operator !== "prefix") return query;
  // The text ends with the last word; without words it is empty.
  return sql`cast(nullif(cast(${query} as pg_catalog.text), '') operator(pg_catalog.||) ':*' as pg_catalog.tsquery)`;
}

/** Quoted, since Postgres would read a number as an OID. */
export function configurationArgument(language: string | null): Sql {
  if (language === null) return NOTHING;
  return sql`${literal(/^\d+$/.test(language) ? `"${language}"` : language)}, `;
}

export function buildFoundInDocument(
  { document, words }: Extract<WherePredicate, { kind: "found in document" }>,
  build: BuildExpression,
): Sql {
  return sql`${buildDocument(document, words, build)} operator(pg_catalog.@@) ${buildWords(words)}`;
}

export function buildRank({ document, words }: ValueExpression & { kind: "rank" }, build: BuildExpression): Sql {
  return sql`pg_catalog.ts_rank(${buildDocument(document, words, build)}, ${buildWords(words)})`;
}

export function buildHighlight({ texts, words }: ValueExpression & { kind: "highlight" }, build: BuildExpression): Sql {
  const all = join(texts.map(build), ", ");
  const text = texts.length === 1 ? sql`cast(${all} as pg_catalog.text)` : sql`pg_catalog.concat_ws(' ', ${all})`;
  return sql`pg_catalog.ts_headline(${configurationArgument(words.language)}${text}, ${buildWords(words)})`;
}

const WEIGHTS = ["A", "B", "C", "D"];

function buildDocument(document: readonly SearchedPart[], { language }: SearchedWords, build: BuildExpression): Sql {
  const [only, ...others] = document;
  // As PostgREST's filters, so that the same index can be used.
  if (only && others.length === 0) return buildVector(only, language, build(only.value));
  const vectors = document.map((part, index) => {
    const isJson = part.form === "json";
    const known = part.form === "other" ? sql`cast(${build(part.value)} as pg_catalog.text)` : build(part.value);
    const vector = buildVector(part, language, sql`coalesce(${known}, ${literal(isJson ? "null" : "")})`);
    return part.form === "tsvector" ? vector : sql`pg_catalog.setweight(${vector}, ${literal(WEIGHTS[index] ?? "D")})`;
  });
  return sql`(${join(vectors, " operator(pg_catalog.||) ")})`;
}

function buildVector({ form }: SearchedPart, language: string | null, value: Sql): Sql {
  if (form === "tsvector") return value;
  const text = form === "other" ? sql`cast(${value} as pg_catalog.text)` : value;
  return sql`pg_catalog.to_tsvector(${configurationArgument(language)}${text})`;
}

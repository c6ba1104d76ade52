import type { SearchedPart, SearchOperator } from "../intent/intent.ts";

export type { SearchedPart };

/** The SQL functions of the planner, or of another builder of statements. */
type SqlWriter<S> = {
  sql(strings: TemplateStringsArray, ...inserted: readonly S[]): S;
  join(pieces: readonly S[], separator: string): S;
  literal(text: string): S;
};

export type SearchQuery<S> = {
  readonly operator: SearchOperator;
  /** Null: the session's default. */
  readonly configuration: S | null;
  readonly words: S;
};

const WEIGHTS = ["A", "B", "C", "D"];

/** The SQL of full-text searches. */
export function makeSearchSql<S>({ sql, join, literal }: SqlWriter<S>) {
  const toQuery: Readonly<Record<SearchOperator, S>> = {
    fts: sql`pg_catalog.to_tsquery`,
    plfts: sql`pg_catalog.plainto_tsquery`,
    phfts: sql`pg_catalog.phraseto_tsquery`,
    wfts: sql`pg_catalog.websearch_to_tsquery`,
    prefix: sql`pg_catalog.plainto_tsquery`,
  };
  const asText = (value: S) => sql`cast(${value} as pg_catalog.text)`;
  const argument = (configuration: S | null) => (configuration === null ? sql`` : sql`${configuration}, `);

  const query = ({ operator, configuration, words }: SearchQuery<S>): S => {
    const text = sql`${toQuery[operator]}(${argument(configuration)}${words})`;
    if (operator !== "prefix") return text;
    // The text ends with the last word; without words it is empty.
    return sql`cast(nullif(${asText(text)}, '') operator(pg_catalog.||) ':*' as pg_catalog.tsquery)`;
  };

  const vector = ({ form, value }: SearchedPart<S>, configuration: S | null): S => {
    if (form === "tsvector") return value;
    return sql`pg_catalog.to_tsvector(${argument(configuration)}${form === "other" ? asText(value) : value})`;
  };

  const vectorOf = (parts: readonly SearchedPart<S>[], configuration: S | null): S => {
    const [only, ...others] = parts;
    // A single part is written like PostgREST's filters, so that the same index can be used.
    if (only && others.length === 0) return vector(only, configuration);
    const vectors = parts.map(({ form, value }, index) => {
      const known = sql`coalesce(${form === "other" ? asText(value) : value}, ${literal(form === "json" ? "null" : "")})`;
      const own = vector({ form: form === "other" ? "text" : form, value: known }, configuration);
      return form === "tsvector" ? own : sql`pg_catalog.setweight(${own}, ${literal(WEIGHTS[index] ?? "D")})`;
    });
    return sql`(${join(vectors, " operator(pg_catalog.||) ")})`;
  };

  return {
    query,
    /** True if the parts together contain the words; if there are several parts, the first counts most. */
    found: (parts: readonly SearchedPart<S>[], searched: SearchQuery<S>): S =>
      sql`${vectorOf(parts, searched.configuration)} operator(pg_catalog.@@) ${query(searched)}`,
    rank: (parts: readonly SearchedPart<S>[], searched: SearchQuery<S>): S =>
      sql`pg_catalog.ts_rank(${vectorOf(parts, searched.configuration)}, ${query(searched)})`,
    /** The texts with the words marked. */
    highlight: (texts: readonly S[], searched: SearchQuery<S>): S => {
      const all = join(texts, ", ");
      const text = texts.length === 1 ? asText(all) : sql`pg_catalog.concat_ws(' ', ${all})`;
      return sql`pg_catalog.ts_headline(${argument(searched.configuration)}${text}, ${query(searched)})`;
    },
    /** The values of several rows as one text; `source` is ` from …`. */
    joined: (value: S, source: S): S =>
      sql`(select pg_catalog.string_agg("_".text, ' ' order by "_".text) from (select ${asText(value)} as text${source}) as "_")`,
  };
}

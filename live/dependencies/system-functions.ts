/** Functions of Postgres that return the time of the transaction. */
const OF_TIME: ReadonlySet<string> = new Set(["age", "now", "statement_timestamp", "transaction_timestamp"]);
export const DEPENDS_ON_TIME = "it depends on the time";
const OF_SEQUENCES: ReadonlySet<string> = new Set([
  "currval",
  "lastval",
  "nextval",
  "pg_sequence_last_value",
  "setval",
]);

/**
 * Stable functions of Postgres that depend on their arguments, the caller's role and settings, privileges, and definitions. For others it is
 * not known if the stream has a change for each change of their results.
 */
const HARMLESS = new RegExp(
  `^(?:${[
    "jsonb?_.*|row_to_json|to_jsonb?|array_to_json",
    "array_to_string|concat|concat_ws|format|length|quote_(?:literal|nullable)|convert|convert_from|convert_to|textanycat|anytextcat|xml|xml_is_well_formed",
    "(?:date|timestamp|timestamptz)_(?:cmp|eq|ge|gt|le|lt|ne|mi|pl)(?:_(?:date|timestamp|timestamptz|interval))?|interval_pl_timestamptz",
    "date|time|timetz|timestamp|timestamptz|timezone|date_(?:add|part|subtract|trunc)|extract|make_timestamptz|overlaps|in_range|generate_series",
    "to_(?:char|date|number|timestamp)|money|numeric",
    "enum_(?:first|last|range)|pg_typeof|pg_collation_for|pg_column_size",
    "(?:plain|phrase|websearch_)?to_tsquery|to_tsvector|ts_headline|ts_match_t[qt]|get_current_ts_config",
    "current_(?:database|schema|schemas|setting|user)|session_user|getdatabaseencoding|pg_client_encoding",
    "has_(?:\\w+_)?privilege|pg_has_role|row_security_active",
    // These functions return another value in each run, or none.
    "pg_(?:backend_pid|current_snapshot|current_xact_id_if_assigned)|txid_current_if_assigned",
  ].join("|")})$`,
);

/** A function of Postgres that is not immutable. */
export type SystemFunction = { readonly name: string; readonly volatility: "s" | "v" };

/** Why a result that the function decides cannot be kept up to date; null if it can. */
export function explainSystemFunction({ name, volatility }: SystemFunction): string | null {
  if (OF_TIME.has(name)) return DEPENDS_ON_TIME;
  if (OF_SEQUENCES.has(name)) return "it reads a sequence";
  if (volatility === "v") return "it calls a volatile function of Postgres";
  return HARMLESS.test(name) ? null : `the stream may not have what ${name} of Postgres reads`;
}

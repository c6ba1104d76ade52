export type QualifiedName = { readonly schema: string; readonly name: string };

/** Quotes an identifier. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

const PLAIN_NAME = /^[a-z_][a-z0-9_]*$/;
/** The keywords of Postgres 18 that its own quote_ident() quotes. */
const KEYWORDS = new Set(
  `all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both case cast
  char character check coalesce collate collation column concurrently constraint create cross current_catalog
  current_date current_role current_schema current_time current_timestamp current_user dec decimal default deferrable
  desc distinct do else end except exists extract false fetch float for foreign freeze from full grant greatest group
  grouping having ilike in initially inner inout int integer intersect interval into is isnull join json json_array
  json_arrayagg json_exists json_object json_objectagg json_query json_scalar json_serialize json_table json_value
  lateral leading least left like limit localtime localtimestamp merge_action national natural nchar none normalize
  not notnull null nullif numeric offset on only or order out outer overlaps overlay placing position precision
  primary real references returning right row select session_user setof similar smallint some substring symmetric
  system_user table tablesample then time timestamp to trailing treat trim true union unique user using values varchar
  variadic verbose when where window with xmlattributes xmlconcat xmlelement xmlexists xmlforest xmlnamespaces
  xmlparse xmlpi xmlroot xmlserialize xmltable`.split(/\s+/),
);

/** Returns an identifier, quoted only if necessary, as in definitions that Postgres prints. */
export function identifier(name: string): string {
  return PLAIN_NAME.test(name) && !KEYWORDS.has(name) ? name : quoteName(name);
}

/** Returns `public.notes`, `public."order"`. */
export function identifierOf({ schema, name }: QualifiedName): string {
  return `${identifier(schema)}.${identifier(name)}`;
}

/** Returns the name of a role; PUBLIC is a keyword. */
export function identifierOfRole(role: string): string {
  return role === "public" ? "public" : identifier(role);
}

export function quoteNames(names: readonly string[]): string {
  return names.map(quoteName).join(", ");
}

/** Returns `"public"."notes"`. */
export function quoteTable({ schema, name }: QualifiedName): string {
  return `${quoteName(schema)}.${quoteName(name)}`;
}

/** Quotes a role; PUBLIC is a keyword. */
export function quoteRole(role: string): string {
  return role === "public" ? "public" : quoteName(role);
}

/** Quotes a text value, valid for either `standard_conforming_strings`. */
export function quoteText(text: string): string {
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return text.includes("\\") ? `e${quoted.replaceAll("\\", "\\\\")}` : quoted;
}

/** Quotes a text value; returns null if it is empty. */
export function quoteOptional(text: string): string {
  return text.trim() === "" ? "null" : quoteText(text.trim());
}

/** Returns the name of a table as a text for `to_regclass`. */
export function tableText(table: QualifiedName): string {
  return quoteText(quoteTable(table));
}

/** Runs the statement only if the condition holds, because files of the current migration are run again and again. */
export function onlyIf(condition: string, statement: string): string {
  const body = `begin\n  if ${condition} then\n    ${statement}\n  end if;\nend`;
  const tag = unusedTag(body);
  return `do ${tag} ${body} ${tag};`;
}

/** Runs the statement; an existing object of this name is no error. */
export function unlessExists(statement: string): string {
  const body = `begin\n  ${statement}\nexception when duplicate_object then null;\nend`;
  const tag = unusedTag(body);
  return `do ${tag} ${body} ${tag};`;
}

function unusedTag(body: string): string {
  for (let number = 0; ; number++) {
    const tag = number === 0 ? "$$" : `$change${number}$`;
    if (!body.includes(tag)) return tag;
  }
}

/** Cleans a typed expression: removes the semicolon at its end, and keeps a comment from hiding the following SQL. */
export function expression(text: string): string {
  const trimmed = text.trim().replace(/;+$/, "").trim();
  return trimmed.includes("--") ? `${trimmed}\n` : trimmed;
}

/** The first line of a migration whose one statement refuses a transaction. */
export const NO_TRANSACTION = "--! no-transaction\n";

/** Joins parts to a name, such as `notes_author_id_fkey`. */
export function joinName(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join("_");
}

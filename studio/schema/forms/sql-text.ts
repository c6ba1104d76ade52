export type QualifiedName = { readonly schema: string; readonly name: string };

/** An identifier. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function quoteNames(names: readonly string[]): string {
  return names.map(quoteName).join(", ");
}

/** `"public"."notes"`. */
export function quoteTable({ schema, name }: QualifiedName): string {
  return `${quoteName(schema)}.${quoteName(name)}`;
}

/** A role; PUBLIC is a keyword. */
export function quoteRole(role: string): string {
  return role === "public" ? "public" : quoteName(role);
}

/** A text value, whatever `standard_conforming_strings` is. */
export function quoteText(text: string): string {
  const quoted = `'${text.replaceAll("'", "''")}'`;
  return text.includes("\\") ? `e${quoted.replaceAll("\\", "\\\\")}` : quoted;
}

/** A text value, or null if it is empty. */
export function quoteOptional(text: string): string {
  return text.trim() === "" ? "null" : quoteText(text.trim());
}

/** The name of a table as a text, as `to_regclass` takes it. */
export function tableText(table: QualifiedName): string {
  return quoteText(quoteTable(table));
}

/** Runs the statement only if the condition holds, because files of the current migration are run again and again. */
export function onlyIf(condition: string, statement: string): string {
  const body = `begin\n  if ${condition} then\n    ${statement}\n  end if;\nend`;
  const tag = unusedTag(body);
  return `do ${tag} ${body} ${tag};`;
}

/** Runs the statement; an object of this name that exists already is no error. */
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

/** An expression that was typed: without the semicolon that ends it, and without a comment that would hide what follows. */
export function expression(text: string): string {
  const trimmed = text.trim().replace(/;+$/, "").trim();
  return trimmed.includes("--") ? `${trimmed}\n` : trimmed;
}

/** The first line of a migration whose one statement refuses a transaction. */
export const NO_TRANSACTION = "--! no-transaction\n";

/** A name made of parts, such as `notes_author_id_fkey`. */
export function joinName(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join("_");
}

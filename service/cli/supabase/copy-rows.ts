import pg from "pg";

const IDENTIFIER = String.raw`(?:"(?:[^"]|"")+"|\w+)`;
/** `copy … from stdin` in Postgres's text format, as dumps write it. */
const COPY = new RegExp(
  String.raw`^copy\s+(${IDENTIFIER}(?:\s*\.\s*${IDENTIFIER})?)\s*(\([^)]*\))?\s+from\s+stdin\s*;[ \t]*\n`,
  "gim",
);
const END_OF_ROWS = /^\\\.[ \t]*$/gm;
const ESCAPE = /\\(?:x([0-9a-f]{1,2})|([0-7]{1,3})|([\s\S]))/giu;
const ESCAPES = new RegExp(`(?:${ESCAPE.source})+`, "giu");
const CONTROL_CHARACTERS: Readonly<Record<string, string>> = {
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  v: "\v",
};
const ROWS_PER_STATEMENT = 500;

/** Converts the rows of `copy … from stdin` to inserts, because a migration is sent as one text, which no rows can follow. */
export function replaceCopies(sql: string): string {
  let replaced = "";
  let end = 0;
  for (const { index, 0: header, 1: table, 2: columns = "" } of sql.matchAll(COPY)) {
    if (index < end) continue;
    END_OF_ROWS.lastIndex = index + header.length;
    const last = END_OF_ROWS.exec(sql);
    if (last === null) break;
    const rows = sql
      .slice(index + header.length, last.index)
      .split("\n")
      .slice(0, -1);
    replaced += sql.slice(end, index) + toInserts(`${table} ${columns}`, rows);
    end = last.index + last[0].length;
  }
  return replaced + sql.slice(end);
}

function toInserts(target: string, rows: readonly string[]): string {
  const statements: string[] = [];
  for (let start = 0; start < rows.length; start += ROWS_PER_STATEMENT) {
    const values = rows
      .slice(start, start + ROWS_PER_STATEMENT)
      .map(toValues)
      .join(",\n");
    // `copy` also writes columns that are "generated always as identity".
    statements.push(`insert into ${target} overriding system value values\n${values};`);
  }
  return statements.join("\n");
}

function toValues(line: string): string {
  return `(${line.split("\t").map(toLiteral).join(", ")})`;
}

function toLiteral(field: string): string {
  if (field === "\\N") return "null";
  return pg.escapeLiteral(decodeEscapes(field));
}

/** Decodes escapes. Numeric escapes are bytes of UTF-8, of which several may make a character. */
function decodeEscapes(field: string): string {
  return field.replace(ESCAPES, (escapes) => {
    const bytes = [...escapes.matchAll(ESCAPE)].map(([, hexadecimal, octal, letter]) => {
      if (hexadecimal !== undefined) return Buffer.of(Number.parseInt(hexadecimal, 16));
      if (octal !== undefined) return Buffer.of(Number.parseInt(octal, 8) & 255);
      return Buffer.from(CONTROL_CHARACTERS[letter!] ?? letter!);
    });
    return Buffer.concat(bytes).toString();
  });
}

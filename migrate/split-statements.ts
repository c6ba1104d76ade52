export type SqlStatement = {
  /** Offset in the script. */
  readonly start: number;
  readonly sql: string;
};

const TOKEN = new RegExp(
  [
    "--[^\\n]*",
    "/\\*",
    // A string with escapes; must precede words, which would match its first letter.
    "[eE]'(?:[^'\\\\]|\\\\[\\s\\S]|'')*'",
    "'(?:[^']|'')*'",
    '"(?:[^"]|"")*"',
    "\\$(?:[A-Za-z_\\u0080-\\uffff][\\w\\u0080-\\uffff]*)?\\$",
    "[A-Za-z_\\u0080-\\uffff][\\w$\\u0080-\\uffff]*",
    "[();]",
  ].join("|"),
  "g",
);

/** Splits an SQL script into statements, without semicolons and without comments before and after them. */
export function splitStatements(script: string): SqlStatement[] {
  const statements: SqlStatement[] = [];
  const token = new RegExp(TOKEN);
  let start: number | null = null;
  let end = 0;
  let parentheses = 0;
  /** Nesting depth of `begin atomic … end` and of `case … end` inside it. */
  let blocks = 0;
  let word = "";
  const finish = () => {
    if (start !== null) statements.push({ start, sql: script.slice(start, end) });
    start = null;
    parentheses = 0;
    blocks = 0;
  };
  for (let place = 0; ; ) {
    const match = token.exec(script);
    const text = match?.[0] ?? "";
    const at = match?.index ?? script.length;
    const between = /\S[\s\S]*/.exec(script.slice(place, at).trimEnd());
    if (between) {
      start ??= place + between.index;
      end = place + between.index + between[0].length;
    }
    if (!match) break;
    if (text === "/*") token.lastIndex = endOfComment(script, at);
    else if (text.startsWith("$")) token.lastIndex = endOf(script, text, at + text.length);
    place = token.lastIndex;
    if (text === "/*" || text.startsWith("--")) continue;
    if (text === ";" && parentheses === 0 && blocks === 0) {
      finish();
      continue;
    }
    start ??= at;
    end = place;
    if (text === "(") parentheses++;
    else if (text === ")") parentheses = Math.max(0, parentheses - 1);
    const before = word;
    word = text.toLowerCase();
    if (word === "atomic" && before === "begin") blocks = 1;
    else if (blocks > 0 && word === "case") blocks++;
    else if (blocks > 0 && word === "end") blocks--;
  }
  finish();
  return statements;
}

function endOf(script: string, delimiter: string, from: number): number {
  const end = script.indexOf(delimiter, from);
  return end < 0 ? script.length : end + delimiter.length;
}

/** Block comments can be nested. */
function endOfComment(script: string, from: number): number {
  const mark = /\/\*|\*\//g;
  mark.lastIndex = from;
  let depth = 0;
  for (let match = mark.exec(script); match; match = mark.exec(script)) {
    depth += match[0] === "/*" ? 1 : -1;
    if (depth === 0) return mark.lastIndex;
  }
  return script.length;
}

/** Removes strings and comments from a statement before its text is searched. */
export function withoutStrings(sql: string): string {
  return sql.replaceAll(/--[^\n]*|'(?:[^']|'')*'/g, " ").trim();
}

/** The offset of an error's position: Postgres counts characters, JavaScript UTF-16 code units. */
export function toUtf16Offset(sql: string, position: number): number {
  return Array.from(sql)
    .slice(0, position - 1)
    .join("").length;
}

/** Returns the number of the line at the offset, from 1. */
export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}

/** The marker line, as graphile-migrate reads it. */
const NO_TRANSACTION = /^--!\s*no-transaction\b/;

/** True if the first line says that the script runs without a transaction. */
export function runsWithoutTransaction(script: string): boolean {
  return NO_TRANSACTION.test(script.split("\n", 1)[0]!);
}

import { type Html, html } from "#rest-gateway/pages";

/** The kinds of tokens that have a colour. They are the classes of their elements. */
type TokenKind = "comment" | "string" | "keyword" | "value";
type Grammar = RegExp;

const QUOTED = String.raw`"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'`;
const NUMBER = String.raw`(?<![\w.])\d+(?:\.\d+)?\b`;

type Parts = Partial<Readonly<Record<TokenKind, string>>>;

/** Earlier kinds win where several begin at one place. */
function grammarOf(parts: Parts, flags = ""): Grammar {
  const groups = Object.entries(parts).map(([kind, pattern]) => `(?<${kind}>${pattern})`);
  return new RegExp(groups.join("|"), `gm${flags}`);
}

const wordsOf = (words: string) => String.raw`(?<![\w$.-])(?:${words.trim().split(/\s+/).join("|")})(?![\w-])`;

const SHELL = grammarOf({
  comment: String.raw`(?<=^|\s)#.*$`,
  string: String.raw`"(?:\\.|[^"\\])*"|'[^']*'`,
  keyword: wordsOf("if then else fi for in do done while export cd"),
  value: String.raw`\$\w+|\$\{[^}]*\}|(?<=\s)--?[A-Za-z][\w-]*`,
});
const SCRIPT = grammarOf({
  comment: String.raw`(?<![:\w])\/\/.*$|\/\*[^]*?\*\/`,
  string: `${QUOTED}|\`(?:\\\\.|[^\`\\\\])*\``,
  keyword: wordsOf(`
    as async await break case catch class const continue default delete else export extends finally for from function if import in
    instanceof interface let new of readonly return satisfies static super switch this throw try type typeof while yield
  `),
  value: `${NUMBER}|${wordsOf("true false null undefined")}`,
});
const SQL = grammarOf(
  {
    comment: "--.*$",
    string: "'(?:''|[^'])*'",
    keyword: wordsOf(`
      add alter always and any array as asc atomic by begin bigint boolean cascade case check coalesce column comment
      commit constraint create database declare default definer delete desc distinct do drop each else enable end execute exists for foreign
      from function generated grant group having identity if immutable in index insert int integer into invoker is join json jsonb key
      language left level limit natural not numeric of offset on or order outer over perform plpgsql policy primary publication raise
      references replace restrictive return returning returns revoke role row schema security select set setof sql stable table temp text
      then timestamptz to trigger truncate type unique update using uuid values view volatile when where with
    `),
    value: `${NUMBER}|${wordsOf("true false null")}`,
  },
  "i",
);
const JSON_TEXT = grammarOf({
  keyword: String.raw`"(?:\\.|[^"\\])*"(?=\s*:)`,
  string: String.raw`"(?:\\.|[^"\\])*"`,
  value: `${NUMBER}|${wordsOf("true false null")}`,
});
const GRAPHQL = grammarOf({
  comment: "#.*$",
  string: String.raw`"(?:\\.|[^"\\])*"`,
  keyword: wordsOf("query mutation subscription fragment on type input enum interface union scalar directive extend"),
  value: String.raw`\$\w+|@\w+|${NUMBER}|${wordsOf("true false null")}`,
});
const PYTHON = grammarOf({
  comment: "#.*$",
  string: `f?(?:${QUOTED})`,
  keyword: wordsOf(
    "and as async await def else except for from if import in is lambda not or print raise return try while with",
  ),
  value: `${NUMBER}|${wordsOf("True False None")}`,
});

const GRAMMARS: Readonly<Record<string, Grammar>> = {
  sh: SHELL,
  bash: SHELL,
  env: SHELL,
  js: SCRIPT,
  ts: SCRIPT,
  jsx: SCRIPT,
  tsx: SCRIPT,
  sql: SQL,
  pgsql: SQL,
  json: JSON_TEXT,
  graphql: GRAPHQL,
  python: PYTHON,
};

/** Renders code with an element around each token that has a colour. The text stays as it is. */
export function highlight(code: string, language: string): Html {
  const grammar = GRAMMARS[language];
  if (grammar === undefined) return html`${code}`;
  const parts: Html[] = [];
  let end = 0;
  for (const { 0: text, index, groups } of code.matchAll(grammar)) {
    const [kind] = Object.entries(groups!).find(([, token]) => token !== undefined)!;
    parts.push(html`${code.slice(end, index)}<span class="${kind}">${text}</span>`);
    end = index + text.length;
  }
  parts.push(html`${code.slice(end)}`);
  return html`${parts}`;
}

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAst } from "rolldown/parseAst";
import { REPOSITORY, serviceFiles } from "./repository.ts";

/** A string or template of the sources that is SQL or a part of it. Interpolations are written as in the source, `${alias}`. */
export type SqlText = { readonly file: string; readonly line: number; readonly text: string };

/** A word of SQL beside which words of English rarely stand. */
const IS_SQL =
  /\b(select|from|join|where|values|returning|order by|group by|insert into|delete from|coalesce|array_agg|string_agg|case when|lateral)\b[^.]|\b(jsonb?_\w+|to_jsonb?|row_to_json|pg_\w+|format|quote_\w+|unnest)\s*\(|::\s*\w|\bas "?[a-z_$]|\.\*/;

/** Returns all SQL that the TypeScript sources write. */
export function sqlTexts(): SqlText[] {
  return serviceFiles().flatMap(textsOf);
}

type Node = { readonly type: string; readonly start: number; readonly end: number } & Readonly<Record<string, unknown>>;

function textsOf(file: string): SqlText[] {
  const source = readFileSync(join(REPOSITORY, file), "utf8");
  const texts: SqlText[] = [];
  const visit = (node: Node) => {
    const text = textOf(node, source);
    // Messages to people begin with a capital or name no table.
    if (text !== null && IS_SQL.test(text) && !/^[A-Z][a-z]+ /.test(text))
      texts.push({ file, line: source.slice(0, node.start).split("\n").length, text });
    for (const child of Object.values(node).flat()) if (isNode(child)) visit(child);
  };
  visit(parseAst(source, { lang: "ts" }, file) as unknown as Node);
  return texts;
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && typeof (value as Node).type === "string";
}

function textOf(node: Node, source: string): string | null {
  if (node.type === "Literal" && typeof node.value === "string") return node.value;
  return node.type === "TemplateLiteral" ? source.slice(node.start + 1, node.end - 1) : null;
}

/** Returns every word of our SQL: aliases, keywords, functions, types, columns. Users may use them as names. */
export function wordsOfSql(): { readonly aliases: string[]; readonly words: string[] } {
  const schema = readFileSync(join(REPOSITORY, "db/schema.sql"), "utf8");
  const texts = [...sqlTexts().map(({ text }) => text), schema];
  const found = (pattern: RegExp) => [
    ...new Set(texts.flatMap((text) => [...text.matchAll(pattern)].map(([, name]) => name!))),
  ];
  return {
    aliases: found(/\bas "?([a-z_$][\w$]{0,40})\b"?/gi).sort(),
    words: found(/(?<![\w$."'{])([a-z_][a-z_0-9]{0,40})(?![\w$])/g).sort(),
  };
}

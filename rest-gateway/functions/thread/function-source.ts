import { readFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { fileURLToPath } from "node:url";
import { compileJsx } from "./compile-jsx.ts";
import type { JsxOptions } from "./messages.ts";

const COMPILED = /\.(m?ts|[jt]sx)$/;

/** Returns true for files that Node cannot read as they are. */
export function isCompiled(url: string): boolean {
  return COMPILED.test(new URL(url).pathname);
}

/** Returns the JavaScript of a file in TypeScript or JSX. */
export function readFunctionSource(url: string, jsx: JsxOptions | null): string {
  const source = readFileSync(fileURLToPath(url), "utf8");
  if (!isCompiled(url)) return source;
  const mayHaveJsx = /\.[jt]sx$/.test(new URL(url).pathname);
  return withoutUnusedImports(mayHaveJsx ? compileTsx(source, url, jsx) : toJavaScript(source, url));
}

/** Most files with this extension have no JSX, and need no compiler. */
function compileTsx(source: string, url: string, jsx: JsxOptions | null): string {
  try {
    return toJavaScript(source, url);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_INVALID_TYPESCRIPT_SYNTAX") throw error;
    return compileJsx(source, url, jsx);
  }
}

/** Compiles enumerations and namespaces, which need code. Other TypeScript is replaced by spaces, which keeps lines. */
function toJavaScript(source: string, sourceUrl: string): string {
  try {
    return stripTypeScriptTypes(source);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") throw error;
    return stripTypeScriptTypes(source, { mode: "transform", sourceMap: true, sourceUrl });
  }
}

const IMPORT = /^[ \t]*import\s+(?:([\w$]+)\s*,?\s*)?(?:\{([^{}]*)\}\s*)?from\s*(["'])[^"'\n]+\3[^\S\n]*;?/gm;

/** Texts and regular expressions, which are kept, and comments. */
const TEXT_OR_COMMENT =
  /("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\[\s\S]|[^`\\])*`|(?<=[=(,:;!&|?{}[\n]\s*)\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\/)|\/\/[^\n]*|\/\*[\s\S]*?\*\//g;

/** A template within a template, whose end the expression above does not find. */
const NESTED_TEMPLATE = /`[^`]*\$\{[^}`]*`/;

/** Drops, as Deno does, imports that only types use: their modules may export nothing at run time. */
export function withoutUnusedImports(source: string): string {
  const code = source.replaceAll(IMPORT, "");
  const rest = NESTED_TEMPLATE.test(code) ? code : code.replaceAll(TEXT_OR_COMMENT, (_match, text = "") => text);
  const isUsed = (name: string) => new RegExp(`(?<![\\w$])${name.replaceAll("$", "\\$")}(?![\\w$])`).test(rest);
  return source.replaceAll(IMPORT, (statement, whole: string | undefined, named: string | undefined) => {
    const names = (named ?? "").split(",").filter((item) => item.trim() !== "");
    const unused = names.filter((item) => !isUsed(localName(item)));
    const isWholeUnused = whole === undefined || !isUsed(whole);
    if (names.length + (whole ? 1 : 0) === 0) return statement;
    if (isWholeUnused && unused.length === names.length) return blank(statement);
    return named === undefined || unused.length === 0
      ? statement
      : statement.replace(named, keepLines(named, names.filter((item) => !unused.includes(item)).join(",")));
  });
}

function localName(item: string): string {
  return item
    .split(/\sas\s/)
    .at(-1)!
    .trim();
}

function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, " ");
}

/** Keeps the lines of errors the same as in the file. */
function keepLines(before: string, after: string): string {
  const missing = before.split("\n").length - after.split("\n").length;
  return after + "\n".repeat(Math.max(0, missing));
}

/** Returns the place of the first line that contains the text in quotes, such as `functions/hello/index.ts:3`. */
export function locate(url: string, text: string): string {
  if (!url.startsWith("file:")) return url;
  const file = fileURLToPath(url);
  const lines = readFileSync(file, "utf8").split("\n");
  const line = lines.findIndex((each) => each.includes(`"${text}"`) || each.includes(`'${text}'`));
  return line < 0 ? file : `${file}:${line + 1}`;
}

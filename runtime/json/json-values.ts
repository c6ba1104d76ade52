/** JSON has no other characters up to this one outside of strings. */
const SPACE = 0x20;

/** The text of a number that a JavaScript number would change. */
export type ExactNumber = { readonly rawJSON: string };

// The argument `context` is part of ES2026, and of Node since 21; TypeScript does not describe it yet.
type SourceReviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;
type JsonWithSource = {
  parse(text: string, reviver: SourceReviver): unknown;
  rawJSON(source: string): ExactNumber;
  isRawJSON(value: unknown): value is ExactNumber;
};
const jsonWithSource = JSON as unknown as JsonWithSource;

/** The start of a number that JavaScript may format differently: with many digits, an exponent, a trailing zero, very small, or -0. */
const INEXACT_NUMBER = /(?:^|[\s:,[])-?(?:[\d.]{16}|\d[\d.]*[eE]|\d+\.\d*0(?!\d)|0\.000000|(?<=-)0(?![\d.]))/;

/** Parses JSON so that numbers keep all digits and are serialized unchanged. */
export function parseJsonExactly(text: string): unknown {
  // A reviver is seven times as slow.
  if (!INEXACT_NUMBER.test(text)) return JSON.parse(text);
  return jsonWithSource.parse(text, (_key, value, { source }) =>
    typeof value === "number" && String(value) !== source ? jsonWithSource.rawJSON(source!) : value,
  );
}

/** Parses a JSON number. */
export function parseJsonNumber(text: string): number | ExactNumber {
  const value = Number(text);
  return String(value) === text ? value : jsonWithSource.rawJSON(text);
}

export function isExactNumber(value: unknown): value is ExactNumber {
  return jsonWithSource.isRawJSON(value);
}

/** Returns the value as a JavaScript number; null if it is no number. */
export function toJavaScriptNumber(value: unknown): number | null {
  if (isExactNumber(value)) return Number(value.rawJSON);
  return typeof value === "number" ? value : null;
}

/** Returns a JSON value as text for a URL. */
export function toAddressText(value: unknown): string {
  return isExactNumber(value) ? value.rawJSON : typeof value === "object" ? JSON.stringify(value) : String(value);
}

export type JsonObject = Readonly<Record<string, unknown>>;

/** True if a value from `JSON.parse` is an object, neither null nor an array. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** True if a value from `parseJsonExactly`, in which a number may be an object, is a JSON object. */
export function isExactJsonObject(value: unknown): value is JsonObject {
  return isJsonObject(value) && !isExactNumber(value);
}

/** Escapes the name of a member for a JSON Pointer (RFC 6901). */
export function escapePointer(name: string): string {
  return name.replaceAll("~", "~0").replaceAll("/", "~1");
}

/** Returns the members of a JSON object by name, as unparsed text. Of duplicate names the last counts, as in Postgres. */
export function readJsonMembers(object: string): ReadonlyMap<string, string> {
  const members = new Map<string, string>();
  let at = skipWhitespace(object, object.indexOf("{") + 1);
  while (object[at] === '"') {
    const colon = skipWhitespace(object, findStringEnd(object, at));
    const name = JSON.parse(object.slice(at, colon)) as string;
    const start = skipWhitespace(object, colon + 1);
    const end = findValueEnd(object, start);
    members.set(name, object.slice(start, end).trimEnd());
    at = skipWhitespace(object, end + 1);
  }
  return members;
}

export function skipWhitespace(text: string, start: number): number {
  let at = start;
  while (text.charCodeAt(at) <= SPACE) at++;
  return at;
}

/** Returns the position after the closing quote. */
export function findStringEnd(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text[at - 1 - backslashes] === "\\") backslashes++;
    if (backslashes % 2 === 0) return at + 1;
  }
  return text.length;
}

/** Returns the position of the comma or bracket after the value. */
export function findValueEnd(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const character = text[at]!;
    if (character === '"') at = findStringEnd(text, at) - 1;
    else if (character === "{" || character === "[") depth++;
    else if (depth === 0 && (character === "," || character === "}" || character === "]")) return at;
    else if (character === "}" || character === "]") depth--;
  }
  return text.length;
}

/** An escape of JSON whose backslash is not escaped itself. */
const ESCAPED_NUL = /(?:^|[^\\])(?:\\\\)*\\u0000/;
const ESCAPED_SURROGATE = /(?:^|[^\\])(?:\\\\)*\\u[dD][89a-fA-F]/;

/** Returns the kind of character in a text that Postgres cannot store; null if there is none. */
export function findUnstorable(text: string): "a NUL character" | "a lone surrogate" | null {
  if (text.includes("\0")) return "a NUL character";
  return text.isWellFormed() ? null : "a lone surrogate";
}

/** Returns the same for the texts in a value in the format of `JSON.stringify`, which `jsonb` would have to store. */
export function findUnstorableInJson(json: string): ReturnType<typeof findUnstorable> {
  if (ESCAPED_NUL.test(json)) return "a NUL character";
  return ESCAPED_SURROGATE.test(json) ? "a lone surrogate" : null;
}

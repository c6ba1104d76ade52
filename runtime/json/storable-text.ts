/** An escape of JSON, not a backslash that is escaped itself. */
const ESCAPED_NUL = /(?:^|[^\\])(?:\\\\)*\\u0000/;
const ESCAPED_SURROGATE = /(?:^|[^\\])(?:\\\\)*\\u[dD][89a-fA-F]/;

/** The kind of character in a text that Postgres cannot store; null if there is none. */
export function findUnstorable(text: string): "a NUL character" | "a lone surrogate" | null {
  if (text.includes("\0")) return "a NUL character";
  return text.isWellFormed() ? null : "a lone surrogate";
}

/** The same for the texts of a value as `JSON.stringify` writes it, which `jsonb` would have to store. */
export function findUnstorableInJson(json: string): ReturnType<typeof findUnstorable> {
  if (ESCAPED_NUL.test(json)) return "a NUL character";
  return ESCAPED_SURROGATE.test(json) ? "a lone surrogate" : null;
}

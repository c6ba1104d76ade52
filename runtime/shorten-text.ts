/** Cuts a text, but no character in two: Postgres stores no half of a surrogate pair in JSON, and UTF-8 has none. */
export function shortenText(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  return text.slice(0, maxLength).replace(/[\uD800-\uDBFF]$/, "");
}

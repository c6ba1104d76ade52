export type JsonObject = Readonly<Record<string, unknown>>;

/** Of what `JSON.parse` gives: an object in braces, neither null nor a list. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
